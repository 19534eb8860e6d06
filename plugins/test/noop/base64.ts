const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A text's UTF-8 bytes in base64 (RFC 4648, section 4), as Go writes bytes into JSON. */
export function base64Of(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let result = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const count = Math.min(3, bytes.length - i);
    const bits = (bytes[i]! << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    for (let k = 0; k <= count; k++) result += alphabet[(bits >> (18 - 6 * k)) & 63];
    result += "=".repeat(3 - count);
  }
  return result;
}
