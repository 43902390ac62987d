import { once } from 'node:events'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { ExecutionContext } from 'ava'
import test from 'ava'
import { openTransport } from '../../src/client/http/transport.ts'
import { RsmError } from '../../src/core/errors.ts'
import { openConnection, trustOptions } from '../../src/net/connect.ts'
import { cleanEnv, runRsm, temporaryDirectory } from '../fixtures/rsm.ts'
import { authorities, damaged } from '../helpers/servers/authorities.ts'

async function startServer(t: ExecutionContext, cert: string, key: string): Promise<string> {
  const server = createServer({ cert, key }, (_, answer) => answer.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('each certificate in --ca-file is trusted, as in curl: root, intermediate, chain or server certificate', async (t) => {
  const { root, intermediate, leaf, stranger, key, file } = authorities(t)
  const url = await startServer(t, leaf + intermediate, key)
  const ask = async (ca: string, warn?: (text: string) => void) => {
    const send = openTransport(openConnection({ url, caFile: file(ca), warn }))
    const { status } = await send({ method: 'GET', path: '/', headers: { connection: 'close' } })
    return status
  }
  for (const ca of [
    root,
    intermediate,
    leaf,
    leaf + intermediate,
    stranger + root,
    `\ufeff# of ours\n${intermediate}`,
  ])
    t.is(await ask(ca), 200)
  const untrusted = await t.throwsAsync(ask(stranger), {
    instanceOf: RsmError,
    message: /certificate is not trusted/,
  })
  t.regex(untrusted.hint ?? '', /ca\.pem contains neither this certificate nor .* -connect 127\.0\.0\.1:\d+$/)
  // A damaged certificate does not stop a client with a configured file, so that it works after an upgrade.
  const warnings: string[] = []
  t.is(await ask(stranger + damaged + root, (text) => warnings.push(text)), 200)
  t.regex(warnings.join('\n'), /^\S+ca\.pem: certificate 2 \(line \d+\) is damaged$/)

  const env = cleanEnv(temporaryDirectory(t))
  const refused = await runRsm(['login', url, '--token-stdin', '--ca-file', file(root + damaged)], env, 'x')
  t.is(refused.exit, 2)
  t.regex(
    refused.stderr,
    /cannot read the certificates in \S+ca\.pem: certificate 2 \(line \d+\) is damaged\n$/,
  )
})

test('a damaged system certificate does not affect the others', async (t) => {
  const { root, intermediate, leaf, stranger, key, file } = authorities(t)
  const url = await startServer(t, leaf + intermediate, key)
  const trust = trustOptions(undefined, undefined, [file(stranger + damaged + root)])
  const [answer] = await once(request(url, { ...trust, agent: false }).end(), 'response')
  t.is(answer.statusCode, 200)
  answer.resume()
})
