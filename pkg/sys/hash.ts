/** SHA-256 of a text's UTF-8 bytes, 64 hexadecimal digits. */
export const sha256 = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** SHA-512 of a text's UTF-8 bytes, 128 hexadecimal digits. */
export const sha512 = (text: string): string => new Bun.CryptoHasher("sha512").update(text).digest("hex");
