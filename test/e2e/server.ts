/**
 * What the containers run: `server.ts NAME PORT...` answers, when spoken to, on every port, TCP and UDP, IPv4 and IPv6, with
 * its name and the address that the client has for it.
 */
const [name, ...ports] = process.argv.slice(2);
const answer = (address: string) => `${name} ${address.replace("::ffff:", "")}\n`;

for (const port of ports.map(Number)) {
  Bun.listen({
    hostname: "::",
    port,
    socket: {
      // Only when asked: what comes after a close resets the connection, and the answer is lost.
      data(socket) {
        socket.end(answer(socket.remoteAddress));
      },
    },
  });
  await Bun.udpSocket({
    hostname: "::",
    port,
    socket: {
      data(socket, _, clientPort, address) {
        socket.send(answer(address), clientPort, address);
      },
    },
  });
}
