/**
 * What the containers run: `server.ts NAME PORT...` answers whatever it is sent, on every port, TCP and UDP, IPv4
 * and IPv6, with its name and the address that the client has for it.
 */
const [name, ...ports] = process.argv.slice(2);
const answer = (address: string) => `${name} ${address.replace("::ffff:", "")}\n`;

for (const port of ports.map(Number)) {
  Bun.listen({
    hostname: "::",
    port,
    socket: {
      // The client closes: what came in after a close of ours would reset the connection, and lose the answer.
      data(socket) {
        socket.write(answer(socket.remoteAddress));
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
