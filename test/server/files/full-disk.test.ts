import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import test from 'ava'
import { openDirectoryFiles } from '../../../src/server/storage/files/directory-files.ts'
import { sendBytes } from '../../helpers/clients/files.ts'
import { mountSmallDisk } from '../../helpers/faults/small-disk.ts'
import { startInjectedServer } from '../../helpers/servers/server.ts'

const mounted = mountSmallDisk(16 * 1024 * 1024)
test.after.always(() => mounted?.unmount())
// A small disk to fill requires permission to mount: root, outside a plain container.
const whereMountable = mounted === null ? test.serial.skip : test.serial

whereMountable(
  'F04 an upload that would fill the disk is cut off first, and the server continues to write',
  async (t) => {
    const server = await startInjectedServer(t, { dataDir: join(String(mounted?.directory), 'data') })
    const bytes = randomBytes(32 * 1024 * 1024)
    t.is((await sendBytes(server, 'POST', `/api/files?size=${bytes.length}`)).status, 413)
    const { data } = await sendBytes(server, 'POST', '/api/files')
    const path = `/api/files/${data.fileId}`
    t.is((await sendBytes(server, 'PUT', `${path}?offset=0`, bytes.subarray(0, 1000))).status, 200)
    t.is((await sendBytes(server, 'PUT', `${path}?offset=1000`, bytes.subarray(1000))).status, 413)
    for (let number = 0; number < 50; number++)
      await server.data('POST', '/api/clusters', { name: `c${number}`, hostIds: [] })
    t.is((await server.api('DELETE', path)).status, 200)
  },
)

whereMountable('F04 an append that fills the disk is undone and frees its space', async (t) => {
  const directory = join(String(mounted?.directory), 'files')
  await mkdir(directory)
  const files = await openDirectoryFiles(directory)
  const bytes = randomBytes(32 * 1024 * 1024)
  await files.append('one', 0, Readable.from([bytes.subarray(0, 1000)]))
  await t.throwsAsync(files.append('one', 1000, Readable.from([bytes.subarray(1000)])), {
    message: "the server's disk is full",
  })
  t.is(await files.size('one'), 1000)
})
