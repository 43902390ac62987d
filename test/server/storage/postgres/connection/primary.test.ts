import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import test from 'ava'
import { RsmError } from '../../../../../src/core/errors.ts'
import { readStoreAddress } from '../../../../../src/server/storage/postgres/connection/address.ts'
import { findPrimary } from '../../../../../src/server/storage/postgres/connection/client.ts'

test('a PostgreSQL without TLS is refused with a remedy where TLS is required, and gets no password', async (t) => {
  const heard: Buffer[] = []
  // PostgreSQL with `ssl = off` answers an SSLRequest with N.
  const server = createServer((socket) =>
    socket.on('data', (bytes) => heard.push(bytes) && socket.write('N')),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const address = readStoreAddress(`postgres://rsm@127.0.0.1:${port}/rsm?sslmode=verify-full`, undefined)
  const error = await t.throwsAsync(findPrimary({ ...address, password: 'secret' }, 'test'), {
    instanceOf: RsmError,
    code: 'unavailable',
  })
  t.regex(error?.message ?? '', /does not support SSL/)
  t.regex(error?.hint ?? '', /^enable TLS in PostgreSQL.*--insecure-store$/)
  t.is(Buffer.concat(heard).toString('hex'), '0000000804d2162f', 'an SSLRequest only')
})
