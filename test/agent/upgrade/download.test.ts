import { existsSync } from 'node:fs'
import test from 'ava'
import { download } from '../../../src/agent/upgrade/upgrade.ts'
import { type Answer, bytes, serve, wanted } from '../../helpers/releases/download-server.ts'

test('a download that differs from the signed order, is too large or is missing leaves nothing behind', async (t) => {
  const cases: [Answer, RegExp][] = [
    [(_, response) => response.end(Buffer.alloc(bytes.length, 'bad')), /has sha256 [0-9a-f]{64}, not/],
    [(_, response) => response.end(Buffer.concat([bytes, bytes])), /sends more than the 400000 bytes/],
    [(_, response) => response.writeHead(404).end(), /answered 404 to \/dl\/rsm-linux-x64: it has no such/],
    [(_, response) => response.writeHead(500).end(), /answered 500/],
  ]
  for (const [answer, message] of cases) {
    const { path, get } = await serve(t, answer)
    const error = await t.throwsAsync(get())
    t.regex(error.message, message)
    t.false(existsSync(path))
  }
  const slow = await serve(t, (_, response) => response.writeHead(503).end(), 1)
  t.regex(
    (await t.throwsAsync(slow.get())).message,
    /did not finish in time: the server is busy or unavailable/,
  )
})

test('a download is at most 1 GiB, and a server cannot make the agent retry without a pause', async (t) => {
  const { ranges, path, get, order } = await serve(
    t,
    (_, response) => response.writeHead(503, { 'retry-after': '-5' }).end(),
    1,
  )
  const large = { ...wanted, size: 1024 ** 3 + 1 }
  await t.throwsAsync(download(order, large, path), { message: /has 1073741825 bytes: more than 1 GiB/ })
  t.is(ranges.length, 0)
  await t.throwsAsync(get(), { message: /did not finish in time: the server is busy or unavailable/ })
  t.is(ranges.length, 1)
})
