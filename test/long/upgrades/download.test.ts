import { readFileSync } from 'node:fs'
import test from 'ava'
import { bytes, serve } from '../../helpers/releases/download-server.ts'

test('a download resumes where it was cut, and is retried if the server is busy', async (t) => {
  const { ranges, path, get } = await serve(t, ({ headers }, response, nth) => {
    if (nth === 1) return response.writeHead(503, { 'retry-after': '1' }).end()
    const from = Number(/bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0)
    response.writeHead(from > 0 ? 206 : 200)
    if (nth === 4) return response.end(bytes.subarray(from))
    response.write(bytes.subarray(from, from + 150_000), () => response.destroy())
    return undefined
  })
  await get()
  t.deepEqual(readFileSync(path), bytes)
  t.is(ranges.length, 4)
  t.deepEqual(ranges.slice(0, 2), [undefined, undefined])
  t.regex(ranges[2] ?? '', /^bytes=\d+-$/)
})

test('a download is retried once before its timeout, even if Retry-After is longer', async (t) => {
  const { ranges, path, get } = await serve(
    t,
    (_, response, nth) =>
      nth === 1 ? response.writeHead(503, { 'retry-after': '300' }).end() : response.end(bytes),
    5,
  )
  await get()
  t.deepEqual(readFileSync(path), bytes)
  t.is(ranges.length, 2)
})
