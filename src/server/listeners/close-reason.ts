/** A control frame has room for 125 bytes, two of which are the code (RFC 6455 §5.5); `ws` throws at more. */
const mostBytes = 123

/** As much of a sentence as fits into a close frame, with no character cut. */
export function closeReason(sentence: string): string {
  const bytes = Buffer.from(sentence)
  if (bytes.length <= mostBytes) return sentence
  let end = mostBytes
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
