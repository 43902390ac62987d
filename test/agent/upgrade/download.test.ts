import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
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

test('what is not as it was signed, too much, or not there leaves nothing behind', async (t) => {
  const cases: [Answer, RegExp][] = [
    [(_, response) => response.end(Buffer.alloc(bytes.length, 'bad')), /has the sha256 [0-9a-f]{64}, not/],
    [(_, response) => response.end(Buffer.concat([bytes, bytes])), /sends more than the 400000 bytes/],
    [
      (_, response) => response.writeHead(404).end(),
      /answered 404 to \/dl\/rsm-linux-x64: it hands out no such/,
    ],
    [(_, response) => response.writeHead(500).end(), /answered 500/],
  ]
  for (const [answer, message] of cases) {
    const { path, get } = await serve(t, answer)
    const error = await t.throwsAsync(get())
    t.regex(error.message, message)
    t.false(existsSync(path))
  }
  const slow = await serve(t, (_, response) => response.writeHead(503).end(), 1)
  t.regex((await t.throwsAsync(slow.get())).message, /not done in time: its downloads are all taken/)
})

test('a server decides neither how much disk a download takes nor that it is asked without a pause', async (t) => {
  const { ranges, path, get, order } = await serve(
    t,
    (_, response) => response.writeHead(503, { 'retry-after': '-5' }).end(),
    1,
  )
  const large = { ...wanted, size: 1024 ** 3 + 1 }
  await t.throwsAsync(download(order, large, path), { message: /has 1073741825 bytes: more than 1 GiB/ })
  t.is(ranges.length, 0)
  await t.throwsAsync(get(), { message: /not done in time: its downloads are all taken/ })
  t.is(ranges.length, 1)
})
