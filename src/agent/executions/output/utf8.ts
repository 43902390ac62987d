/** How many bytes at the end begin a character of UTF-8 whose rest has not come yet: 0 to 3. */
export function incompleteTail(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) {
      const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return byte <= 0xf4 && needed > back ? back : 0
    }
  }
  return 0
}

/** How many bytes at the beginning only continue a character that began before: 0 to 3. */
export function orphanedHead(bytes: Uint8Array): number {
  let count = 0
  while (count < Math.min(3, bytes.length) && ((bytes[count] ?? 0) & 0xc0) === 0x80) count += 1
  return count
}
