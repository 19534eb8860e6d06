/** What pkg/invoke uses of node:os. */
export const endianness = (): "LE" => "LE";
