export const newline = 10

/** Lines of a stream, without newlines; the rest after the last newline is omitted. */
export async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let begun: Uint8Array[] = []
  for await (const block of bytes) {
    let start = 0
    for (let end = block.indexOf(newline); end >= 0; end = block.indexOf(newline, start)) {
      yield Buffer.concat([...begun, block.subarray(start, end)])
      begun = []
      start = end + 1
    }
    begun.push(block.subarray(start))
  }
}

/** Each blob of a stream with its bytes, which the caller must read to their end before the next blob. */
export async function* blobsOf<B extends object>(
  items: AsyncIterable<B | Uint8Array>,
): AsyncGenerator<{ blob: B; bytes: AsyncIterable<Uint8Array> }> {
  const iterator = items[Symbol.asyncIterator]()
  let next = await iterator.next()
  async function* bytes(): AsyncGenerator<Uint8Array> {
    for (next = await iterator.next(); !next.done; next = await iterator.next())
      if (next.value instanceof Uint8Array) yield next.value
      else return
  }
  while (!next.done) {
    if (next.value instanceof Uint8Array) throw new Error('bytes without a blob before them')
    yield { blob: next.value, bytes: bytes() }
  }
}
