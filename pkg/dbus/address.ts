/** Where the system bus is unless DBUS_SYSTEM_BUS_ADDRESS says otherwise. */
export const standardBusAddress = "unix:path=/run/dbus/system_bus_socket";

/**
 * The path of the socket that a D-Bus address names: the first of `;`-separated addresses that is a UNIX socket with
 * a path. Undefined when there is none; other transports (abstract sockets, TCP) are no system bus of Linux today.
 * https://dbus.freedesktop.org/doc/dbus-specification.html#addresses
 */
export function socketPathOf(address: string): string | undefined {
  for (const each of address.split(";")) {
    if (!each.startsWith("unix:")) continue;
    for (const pair of each.slice(5).split(","))
      if (pair.startsWith("path=")) return unescaped(pair.slice(5));
  }
  return undefined;
}

/** `%2c` for a comma and so on, a byte each. */
function unescaped(text: string): string {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const byte = text[i] === "%" ? Number.parseInt(text.slice(i + 1, i + 3), 16) : Number.NaN;
    if (Number.isNaN(byte)) out += text[i];
    else {
      out += String.fromCharCode(byte);
      i += 2;
    }
  }
  return out;
}
