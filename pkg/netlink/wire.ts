const encoder = new TextEncoder();

/**
 * A growing buffer that messages are written into and read from, in host byte order (little-endian on every
 * architecture that we build for). Writing happens at `at`; reading takes positions and leaves `at` alone.
 */
export class Wire {
  bytes: Uint8Array<ArrayBuffer>;
  view: DataView;
  at = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
    this.view = new DataView(this.bytes.buffer);
  }

  /** Makes room for `count` zeroed bytes, moves past them, and returns where they begin. */
  skip(count: number): number {
    const start = this.at;
    this.at += count;
    if (this.at > this.bytes.length) this.grow(this.at);
    this.bytes.fill(0, start, this.at);
    return start;
  }

  /** Zero bytes up to the next multiple of four: NLMSG_ALIGN and NLA_ALIGN. */
  align(): void {
    this.skip(-this.at & 3);
  }

  putBytes(data: Uint8Array): void {
    const start = this.skip(data.length); // may exchange the buffer
    this.bytes.set(data, start);
  }

  putText(text: string): void {
    const start = this.skip(text.length * 3);
    this.at = start + encoder.encodeInto(text, this.bytes.subarray(start)).written;
  }

  /** Enlarges the buffer to hold at least `size` bytes, keeping what is in it. */
  grow(size: number): void {
    const larger = new Uint8Array(Math.max(size, this.bytes.length * 2));
    larger.set(this.bytes);
    this.bytes = larger;
    this.view = new DataView(larger.buffer);
  }
}
