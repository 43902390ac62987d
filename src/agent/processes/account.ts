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

/** Milliseconds that a lookup in the host's directory service may take. */
export const directoryPatience = 10_000
export const directorySilent = 'the directory service of this host does not answer'

export function isOverdue(cause: unknown): boolean {
  return cause instanceof Error && 'killed' in cause && cause.killed === true
}

/**
 * Looks up a user with getent(1), which includes users of a directory service. @throws RsmError `not_found`;
 * `unavailable` if the directory service does not answer.
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

/** Removes capabilities permanently, so that nothing can restore them. */
const dropAll = ['--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all']

/**
 * Command prefix that switches a root agent to this user (design "The agent"), with its groups only: Node's
 * own uid option keeps root's groups.
 */
export function dropTo({ uid, gid }: Pick<Account, 'uid' | 'gid'>): [program: string, ...words: string[]] {
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--init-groups', '--no-new-privs', ...dropAll, '--']
}

/** Reason why this user is not allowed here, as a sentence; null if allowed. */
export function barredUser(
  user: string,
  { runAs, allowRunAs, own }: { runAs: string; allowRunAs: readonly string[]; own: Account },
): string | null {
  // Match whole names: `includes` on a string would match parts of a name.
  if (user !== runAs && !new Set(allowRunAs).has(user))
    return `not allowed to run as ${user}: the agent needs --allow-run-as ${user}`
  if (user !== own.name && own.uid !== 0)
    return `not allowed to run as ${user}: the agent runs as ${own.name}, and only root can become another user`
  return null
}

async function runAs(account: Account, words: readonly string[], patience: number): Promise<void> {
  const [program, ...drop] = dropTo(account)
  const limit = { timeout: patience, killSignal: 'SIGKILL' } as const
  await run(program, [...drop, ...words], limit).catch((cause: unknown) => {
    // setpriv looks up the user's groups, so it can time out too.
    if (!isOverdue(cause)) throw cause
    throw new RsmError('unavailable', `this host cannot run scripts as ${account.name}: ${directorySilent}`, {
      cause,
    })
  })
}

/** @throws RsmError `unavailable` if a root agent cannot switch users on this host. */
export async function checkDrop(account: Account, patience: number = directoryPatience): Promise<void> {
  await runAs(account, ['true'], patience).catch((cause: unknown) => {
    if (cause instanceof RsmError) throw cause
    const stderr = cause instanceof Error && 'stderr' in cause ? String(cause.stderr).trim() : ''
    throw new RsmError(
      'unavailable',
      `this host cannot run scripts as ${account.name}: ${stderr || String(cause)}`,
      {
        hint: 'install util-linux 2.33 or newer, which has setpriv',
        cause,
      },
    )
  })
}

/** @throws RsmError `unavailable` if the user cannot enter the directory. */
export async function checkReach(account: Account, directory: string): Promise<void> {
  await runAs(account, ['test', '-x', directory], directoryPatience).catch((cause: unknown) => {
    if (cause instanceof RsmError) throw cause
    throw new RsmError(
      'unavailable',
      `scripts cannot run as ${account.name}: that user has no access to ${directory} or a directory above it`,
      { hint: 'run chmod o+x on each directory above it, or choose another --data-dir', cause },
    )
  })
}

/**
 * The user of `--run-as`. @throws RsmError `usage` if it does not exist, or this agent cannot switch to it;
 * `unavailable` if that is unknown.
 */
export async function namedAccount(
  name: string,
  own: Account,
  patience: number = directoryPatience,
): Promise<Account> {
  const account = await findAccount(name, patience).catch((cause: unknown) => {
    if (cause instanceof RsmError && cause.code === 'unavailable')
      throw new RsmError('unavailable', `--run-as ${name}: ${directorySilent}`, { cause })
    throw new RsmError('usage', `--run-as ${name}: there is no such user on this host`, { cause })
  })
  if (account.uid !== own.uid && own.uid !== 0)
    throw new RsmError(
      'usage',
      `--run-as ${name}: this agent runs as ${own.name}, and only root can run scripts as another user`,
      {
        hint: `start the agent as root, or as ${name}`,
      },
    )
  return account
}
