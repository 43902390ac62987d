/** A control frame holds 125 bytes, two of them the code (RFC 6455 §5.5); `ws` throws above that. */
const mostBytes = 123

/** Truncates a sentence to fit a close frame, between characters. */
export function closeReason(sentence: string): string {
  const bytes = Buffer.from(sentence)
  if (bytes.length <= mostBytes) return sentence
  let end = mostBytes
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
