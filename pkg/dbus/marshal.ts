/*
 * The wire format of D-Bus, as much of it as calls with strings need: little-endian, every value aligned to its size
 * within the message. https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-marshaling
 */

/** What a reply holds: strings (also object paths and signatures), numbers, booleans, and lists of these. */
export type Value = string | number | boolean | Value[];

/** Writes values one after the other. */
export class Writer {
  readonly #encoder = new TextEncoder();
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  align(size: number): void {
    this.#reserve(size);
    this.#length = Math.ceil(this.#length / size) * size;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  uint32(value: number): void {
    this.align(4);
    this.#reserve(4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  /** Overwrites a number that was written before its value was known. */
  uint32At(position: number, value: number): void {
    this.#view.setUint32(position, value, true);
  }

  /** Throws TypeError for a NUL, which no D-Bus string may hold. */
  string(text: string): void {
    const bytes = this.#utf8(text);
    this.uint32(bytes.length);
    this.#raw(bytes);
    this.byte(0);
  }

  signature(text: string): void {
    this.byte(text.length);
    this.#raw(this.#utf8(text));
    this.byte(0);
  }

  #utf8(text: string): Uint8Array {
    if (text.includes("\0")) throw new TypeError(`${JSON.stringify(text)} has a NUL`);
    return this.#encoder.encode(text);
  }

  #raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = new Uint8Array((this.#length + more) * 2);
    larger.set(this.bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

/** Reads values one after the other. Throws RangeError past the end, TypeError for a type that is not among `Value`. */
export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #position: number;

  constructor(bytes: Uint8Array, position = 0) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  align(size: number): void {
    this.#position = Math.ceil(this.#position / size) * size;
  }

  byte(): number {
    return this.#view.getUint8(this.#position++);
  }

  uint32(): number {
    this.align(4);
    const value = this.#view.getUint32(this.#position, true);
    this.#position += 4;
    return value;
  }

  /** One value of the type that stands at `at` in the signature, and where the next type stands. */
  value(signature: string, at: number): { value: Value; next: number } {
    switch (signature[at]) {
      case "s":
      case "o":
        return { value: this.#text(this.uint32()), next: at + 1 };
      case "g":
        return { value: this.#text(this.byte()), next: at + 1 };
      case "u":
        return { value: this.uint32(), next: at + 1 };
      case "i":
        return { value: this.uint32() | 0, next: at + 1 };
      case "b":
        return { value: this.uint32() !== 0, next: at + 1 };
      case "v": {
        const inner = this.#text(this.byte());
        return { value: this.value(inner, 0).value, next: at + 1 };
      }
      case "a":
        return this.#array(signature, at + 1);
      default:
        throw new TypeError(`a D-Bus value of type "${signature.slice(at)}"`);
    }
  }

  #array(signature: string, at: number): { value: Value; next: number } {
    const end = this.uint32() + this.#position;
    const list: Value[] = [];
    let next = at + 1;
    while (this.#position < end) {
      const item = this.value(signature, at);
      list.push(item.value);
      next = item.next;
    }
    return { value: list, next };
  }

  #text(length: number): string {
    const end = this.#position + length;
    if (end >= this.#bytes.length) throw new RangeError("a D-Bus message that ends within a text");
    const text = new TextDecoder().decode(this.#bytes.subarray(this.#position, end));
    this.#position = end + 1;
    return text;
  }
}
