/*
 * Options of DHCP messages: code, length, value. RFC 2132; RFC 3396 for values that are longer than one option
 * takes; RFC 2131 section 4.1 for those that continue in the fields `file` and `sname`.
 */

/** Codes that we read or write by name. https://www.iana.org/assignments/bootp-dhcp-parameters */
export const Option = {
  Pad: 0,
  SubnetMask: 1,
  Router: 3,
  DomainNameServer: 6,
  HostName: 12,
  DomainName: 15,
  StaticRoute: 33,
  RequestedAddress: 50,
  LeaseTime: 51,
  Overload: 52,
  MessageType: 53,
  ServerId: 54,
  ParameterRequestList: 55,
  Message: 56,
  MaxMessageSize: 57,
  RenewalTime: 58,
  RebindingTime: 59,
  VendorClass: 60,
  ClientId: 61,
  UserClass: 77,
  DomainSearch: 119,
  ClasslessStaticRoute: 121,
  End: 255,
} as const;

/** Values by code. One that came in several pieces is whole here. */
export type Options = Map<number, Uint8Array>;

/** A packet that is not what it ought to be; the message completes "ignored: ". */
export class Malformed extends Error {
  override readonly name = "Malformed";
}

/** The options as bytes, in the map's order, with the end mark; the message type comes first when it is the first. */
export function encodeOptions(options: Options): Uint8Array {
  const bytes: number[] = [];
  for (const [code, value] of options) {
    for (let at = 0; at < value.length || at === 0; at += 255) {
      const piece = value.subarray(at, at + 255);
      bytes.push(code, piece.length, ...piece);
    }
  }
  bytes.push(Option.End);
  return Uint8Array.from(bytes);
}

/**
 * Reads the options field and, where option 52 says so, `file` and `sname`, in the order of RFC 3396 section 5.
 * Throws Malformed for an option that goes beyond its field.
 */
export function decodeOptions(field: Uint8Array, file: Uint8Array, sname: Uint8Array): Options {
  const options: Options = new Map();
  readField(options, field, "the options");
  const overload = options.get(Option.Overload);
  options.delete(Option.Overload);
  if (overload === undefined) return options;
  if (overload.length !== 1 || overload[0]! < 1 || overload[0]! > 3)
    throw new Malformed(`option 52 has the value [${overload}]`);
  if ((overload[0]! & 1) !== 0) readField(options, file, "the field file");
  if ((overload[0]! & 2) !== 0) readField(options, sname, "the field sname");
  options.delete(Option.Overload); // means nothing in there
  return options;
}

function readField(options: Options, field: Uint8Array, name: string): void {
  for (let at = 0; at < field.length; ) {
    const code = field[at++]!;
    if (code === Option.Pad) continue;
    if (code === Option.End) return;
    const length = field[at++];
    if (length === undefined || at + length > field.length)
      throw new Malformed(`option ${code} goes beyond ${name}`);
    append(options, code, field.subarray(at, at + length));
    at += length;
  }
}

function append(options: Options, code: number, piece: Uint8Array): void {
  const before = options.get(code);
  options.set(code, before === undefined ? piece.slice() : Uint8Array.from([...before, ...piece]));
}

/** A number of four bytes, such as seconds; undefined when the option is absent or has another length. */
export function uint32Option(options: Options, code: number): number | undefined {
  const value = options.get(code);
  return value?.length === 4 ? new DataView(value.buffer, value.byteOffset).getUint32(0) : undefined;
}

/** The addresses of an option; none when it is absent, those that are whole when it is cut off. */
export function addressesOption(options: Options, code: number): number[] {
  const value = options.get(code) ?? new Uint8Array();
  const view = new DataView(value.buffer, value.byteOffset, value.length);
  return Array.from({ length: Math.floor(value.length / 4) }, (_, i) => view.getUint32(4 * i));
}
