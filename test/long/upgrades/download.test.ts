import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { download } from '../../../src/agent/upgrade/download.ts'
import type { UpgradeOrder } from '../../../src/agent/upgrade/order.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

const bytes = Buffer.alloc(400_000, 'rsm')
const wanted = {
  name: 'rsm-linux-x64',
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
}

type Answer = (request: IncomingMessage, response: ServerResponse, nth: number) => void

/** A server that answers each request as it is told to; gives what ranges it was asked for. */
async function serve(t: ExecutionContext, answer: Answer, timeout = 30) {
  const ranges: (string | undefined)[] = []
  const server = createServer((request, response) => {
    ranges.push(request.headers.range)
    answer(request, response, ranges.length)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const path = join(temporaryDirectory(t), 'download')
  const order = { url, timeout, environment: {} } as unknown as UpgradeOrder
  return { ranges, path, order, get: () => download(order, wanted, path) }
}

test('a download that is cut goes on where it was cut, and one that finds no place comes again', async (t) => {
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
