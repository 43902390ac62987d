import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import { promisify } from 'node:util'
import { RsmError } from '../../core/errors.ts'

/** A user of this machine that scripts can run as. */
export interface Account {
  readonly name: string
  readonly uid: number
  readonly gid: number
  readonly home: string
  readonly shell: string
}

const run = promisify(execFile)

export function ownAccount(): Account {
  const own = userInfo()
  return {
    name: own.username,
    uid: own.uid,
    gid: own.gid,
    home: own.homedir,
    shell: own.shell || '/bin/sh',
  }
}

/** By getent(1), so that users of a directory service are found too. @throws RsmError `not_found`. */
export async function findAccount(name: string): Promise<Account> {
  const { stdout } = await run('getent', ['passwd', '--', name]).catch((cause: unknown) => {
    throw new RsmError('not_found', `there is no user ${name} on this host`, { cause })
  })
  const [found = '', , uid, gid, , home = '/', shell] = stdout.trim().split(':')
  return { name: found, uid: Number(uid), gid: Number(gid), home, shell: shell || '/bin/sh' }
}
