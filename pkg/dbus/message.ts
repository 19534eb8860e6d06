import { Reader, type Value, Writer } from "./marshal.ts";

/** A method to be called, with its arguments, all of them strings. */
export interface MethodCall {
  destination: string;
  path: string;
  interface: string;
  member: string;
  args: readonly string[];
}

/** What else may come from the bus has no reply serial, or another one. */
export interface Message {
  /** 2: the method returned; 3: it failed. 1 and 4, calls and signals, are not for us. */
  type: number;
  replySerial: number | undefined;
  /** The error's name. */
  errorName: string;
  body: Value[];
}

/** https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-messages */
const METHOD_CALL = 1;
export const METHOD_RETURN = 2;
export const ERROR = 3;
/** The bus must not start the service for this call. */
const NO_AUTO_START = 2;
const [PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY_SERIAL, DESTINATION, , SIGNATURE] = [
  1, 2, 3, 4, 5, 6, 7, 8,
] as const;

const littleEndian = "l".charCodeAt(0);
const fixedHeaderBytes = 16;

export function encodeCall(serial: number, call: MethodCall): Uint8Array {
  const body = new Writer();
  for (const arg of call.args) body.string(arg);

  const message = new Writer();
  for (const byte of [littleEndian, METHOD_CALL, NO_AUTO_START, 1]) message.byte(byte);
  message.uint32(body.length);
  message.uint32(serial);
  message.uint32(0);
  field(message, PATH, "o", call.path);
  field(message, INTERFACE, "s", call.interface);
  field(message, MEMBER, "s", call.member);
  field(message, DESTINATION, "s", call.destination);
  if (call.args.length > 0) field(message, SIGNATURE, "g", "s".repeat(call.args.length));
  message.uint32At(12, message.length - fixedHeaderBytes);
  message.align(8);

  const out = new Uint8Array(message.length + body.length);
  out.set(message.bytes);
  out.set(body.bytes, message.length);
  return out;
}

function field(message: Writer, code: number, type: string, text: string): void {
  message.align(8);
  message.byte(code);
  message.signature(type);
  if (type === "g") message.signature(text);
  else message.string(text);
}

/** No message of the bus is longer; 16 MiB are far beyond what any method here returns. */
const maxBytes = 16 << 20;

/** How long the message at the beginning of what was received is; undefined until its header is there. */
export function messageBytes(received: Uint8Array): number | undefined {
  if (received.length < fixedHeaderBytes) return undefined;
  if (received[0] !== littleEndian) throw new TypeError("a D-Bus message that is not little-endian");
  const view = new DataView(received.buffer, received.byteOffset, received.length);
  const [body, fields] = [view.getUint32(4, true), view.getUint32(12, true)];
  if (body > maxBytes || fields > maxBytes) throw new RangeError(`a D-Bus message of ${body} bytes`);
  return bodyStart(fields) + body;
}

const bodyStart = (fields: number): number => Math.ceil((fixedHeaderBytes + fields) / 8) * 8;

/** Reads a whole message; the body only of replies, since signals may hold types that we never ask for. */
export function decodeMessage(bytes: Uint8Array): Message {
  const header = new Reader(bytes, 12);
  const end = header.uint32() + fixedHeaderBytes;
  let signature = "";
  const message: Message = { type: bytes[1]!, replySerial: undefined, errorName: "", body: [] };
  for (header.align(8); header.position < end; header.align(8)) {
    const code = header.byte();
    const { value } = header.value("v", 0);
    if (code === REPLY_SERIAL) message.replySerial = Number(value);
    if (code === ERROR_NAME) message.errorName = String(value);
    if (code === SIGNATURE) signature = String(value);
  }
  if (message.type !== METHOD_RETURN && message.type !== ERROR) return message;
  const body = new Reader(bytes, bodyStart(end - fixedHeaderBytes));
  for (let at = 0; at < signature.length; ) {
    const { value, next } = body.value(signature, at);
    message.body.push(value);
    at = next;
  }
  return message;
}
