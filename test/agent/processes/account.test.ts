import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { checkDrop, findAccount, namedAccount, ownAccount } from '../../../src/agent/processes/account.ts'
import { warnOfUnknown } from '../../../src/agent/processes/script-setting.ts'
import { RsmError } from '../../../src/core/errors.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

test('a lookup in a directory service that hangs times out, and is not reported as an unknown user', async (t) => {
  const path = process.env['PATH']
  t.teardown(() => {
    process.env['PATH'] = path
  })
  const missing = await t.throwsAsync(findAccount('no-such-user'), { instanceOf: RsmError })
  t.is(missing?.code, 'not_found')
  t.is(missing?.message, 'there is no user no-such-user on this host')

  const directory = await temporaryDirectory(t)
  for (const program of ['getent', 'setpriv']) {
    // Ignores TERM, like a process that waits for a kernel lock.
    writeFileSync(join(directory, program), '#!/bin/sh\ntrap "" TERM\nexec sleep 600\n')
    chmodSync(join(directory, program), 0o755)
  }
  process.env['PATH'] = `${directory}:${path}`
  const own = { ...ownAccount(), uid: 0 }
  const warned: string[] = []
  const silent = { instanceOf: RsmError, code: 'unavailable' } as const
  await Promise.all([
    t.throwsAsync(findAccount('app', 100), {
      ...silent,
      message: 'the user app could not be looked up: the directory service of this host does not answer',
    }),
    t.throwsAsync(namedAccount('app', own, 100), { ...silent, message: /^--run-as app: .*does not answer$/ }),
    t.throwsAsync(checkDrop(own, 100), { ...silent, message: /cannot run scripts as .*does not answer$/ }),
    warnOfUnknown(['app'], (_level, message) => warned.push(message), { dataDir: null, patience: 100 }),
  ])
  t.deepEqual(
    warned.map((message) => message.replace(/;.*/, '')),
    ['--allow-run-as app: the directory service of this host does not answer'],
  )
})
