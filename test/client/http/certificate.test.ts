import test from 'ava'
import { certificateEnds } from '../../../src/net/connect.ts'
import { startTlsServer } from '../../helpers/servers/tls-server.ts'

test('certificateEnds reads a trusted or untrusted certificate, and returns null without TLS or response', async (t) => {
  const { url, server } = await startTlsServer(t, { selfSigned: true })
  const ends = await certificateEnds({ url })
  t.true(ends !== null && ends > Date.now())
  await server.close()
  t.is(await certificateEnds({ url }), null)
  t.is(await certificateEnds({ url: url.replace('https:', 'http:') }), null)
})
