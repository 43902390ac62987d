import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { Mutex } from '../../../../src/core/mutex.ts'
import { createLog } from '../../../../src/disk/log.ts'
import { createBackups } from '../../../../src/server/storage/backup/backup.ts'

test('a backup waits for a running removal of old data, and removals during a backup are postponed', async (t) => {
  const dataLock = new Mutex()
  let end = () => {}
  let begun = 0
  const made = { sequence: 1, files: 0, bytes: 0, damaged: [] }
  const begin = createBackups({
    maintenance: {
      async backup() {
        if (++begun === 2) throw new Error('no such directory')
        const ended = new Promise<typeof made>((resolve) => {
          end = () => resolve(made)
        })
        return { stream: Readable.from([]), made: ended }
      },
    },
    dataLock,
    log: createLog('ERROR'),
  })
  const options = { withOutput: false }
  const sweep = dataLock.tryAcquire()
  const backup = begin(options)
  await t.throwsAsync(begin(options), { code: 'conflict', message: /a backup is already running/ })
  await setImmediate()
  t.is(begun, 0)
  sweep?.()
  const { made: first } = await backup
  t.is(dataLock.tryAcquire(), null)
  await t.throwsAsync(begin(options), { code: 'conflict' })
  end()
  await first
  dataLock.tryAcquire()?.()
  await t.throwsAsync(begin(options), { message: 'no such directory' })
  const third = await begin(options)
  end()
  await third.made
})
