/** Bytes of the ids in one text: with base64 and all around them it fits into a notification. */
const mostBytes = 5_000

/** Appends a number from 0 to 2^53 in groups of seven bits, the lowest first. */
function pushVarint(bytes: number[], value: number): void {
  let rest = value
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
}

/**
 * Ids as texts of base64, each at most 6,700 characters: their ascending order, as the differences to the one before. Of 100,000
 * hosts 3,000 take 4 KB.
 */
export function encodeIds(ids: Iterable<number>): string[] {
  const texts: string[] = []
  let bytes: number[] = []
  let last = 0
  for (const id of [...new Set(ids)].sort((a, b) => a - b)) {
    if (bytes.length >= mostBytes) {
      texts.push(Buffer.from(bytes).toString('base64'))
      bytes = []
      last = 0
    }
    pushVarint(bytes, id - last)
    last = id
  }
  if (bytes.length > 0) texts.push(Buffer.from(bytes).toString('base64'))
  return texts
}

export function decodeIds(text: string): number[] {
  const ids: number[] = []
  let id = 0
  let value = 0
  let factor = 1
  for (const byte of Buffer.from(text, 'base64')) {
    value += (byte % 0x80) * factor
    factor *= 0x80
    if (byte >= 0x80) continue
    id += value
    ids.push(id)
    value = 0
    factor = 1
  }
  return ids
}
