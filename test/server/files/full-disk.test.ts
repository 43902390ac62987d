import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import test from 'ava'
import { sendBytes } from '../../helpers/clients/files.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { startInjectedServer } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

const mounted = mountSmallDisk(16 * 1024 * 1024)
test.after.always(() => mounted?.unmount())
// Only a process that may mount can have a small disk of its own to fill: root, outside a plain container.
const whereMountable = mounted === null ? test.serial.skip : test.serial

whereMountable('F04 an upload that fills the disk leaves the server the room that it took', async (t) => {
  const server = await startInjectedServer(t, { dataDir: join(String(mounted?.directory), 'data') })
  const bytes = randomBytes(32 * 1024 * 1024)
  const { data } = await sendBytes(server, 'POST', `/api/files?size=${bytes.length}`)
  const path = `/api/files/${data.fileId}`
  t.is((await sendBytes(server, 'PUT', `${path}?offset=0`, bytes.subarray(0, 1000))).status, 200)
  t.is((await sendBytes(server, 'PUT', `${path}?offset=1000`, bytes.subarray(1000))).status, 503)
  for (let number = 0; number < 50; number++)
    await until(
      'a cluster is written',
      async () =>
        (await server.api('POST', '/api/clusters', { name: `c${number}`, hostIds: [] })).status === 201,
      10_000,
    )
  t.is((await server.data('GET', path)).offset, 1000)
})
