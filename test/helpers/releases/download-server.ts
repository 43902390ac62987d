import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import type { UpgradeOrder } from '../../../src/agent/upgrade/order.ts'
import { download } from '../../../src/agent/upgrade/upgrade.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

export const bytes = Buffer.alloc(400_000, 'rsm')
/** The executable that an agent must download. */
export const wanted = {
  name: 'rsm-linux-x64',
  size: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
}

export type Answer = (request: IncomingMessage, response: ServerResponse, nth: number) => void

/** A server that answers each request with `answer`; lists the ranges of the requests. */
export async function serve(t: ExecutionContext, answer: Answer, timeout = 30) {
  const ranges: (string | undefined)[] = []
  const server = createServer((request, response) => {
    ranges.push(request.headers.range)
    answer(request, response, ranges.length)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const path = join(temporaryDirectory(t), 'download')
  const order = { dataDir: temporaryDirectory(t), url, timeout, environment: {} } as unknown as UpgradeOrder
  return { ranges, path, order, get: () => download(order, wanted, path) }
}
