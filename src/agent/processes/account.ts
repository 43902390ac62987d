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

/** How long a program that asks the directory service of this host may take, milliseconds. */
export const directoryPatience = 10_000
export const directorySilent = 'the directory service of this host does not answer'

/** Whether a program of this machine was ended because it took too long. */
export function isOverdue(cause: unknown): boolean {
  return cause instanceof Error && 'killed' in cause && cause.killed === true
}

/**
 * By getent(1), so that users of a directory service are found too. @throws RsmError `not_found`, `unavailable` when the
 * directory service does not answer.
 */
export async function findAccount(name: string, patience: number = directoryPatience): Promise<Account> {
  const asked = run('getent', ['passwd', '--', name], { timeout: patience, killSignal: 'SIGKILL' })
  const { stdout } = await asked.catch((cause: unknown) => {
    if (isOverdue(cause))
      throw new RsmError('unavailable', `the user ${name} could not be looked up: ${directorySilent}`, {
        cause,
      })
    throw new RsmError('not_found', `there is no user ${name} on this host`, { cause })
  })
  const [found = '', , uid, gid, , home = '/', shell] = stdout.trim().split(':')
  return { name: found, uid: Number(uid), gid: Number(gid), home, shell: shell || '/bin/sh' }
}
