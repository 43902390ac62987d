import { execFile } from 'node:child_process'
import { realpathSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { RsmError } from '../../core/errors.ts'
import type { SandboxMode } from '../../core/hosts/host.ts'
import { type Account, dropTo } from './account.ts'
import { quoted, searchPath } from './programs.ts'

const run = promisify(execFile)
const probePatience = 20_000

export type Interpreter = readonly string[]

export interface Boxed {
  /** Shell command run as the script's user; `$1` is the working directory. */
  readonly enter: string
  readonly workDir: string
  readonly interpreter: Interpreter
  /** Path on the host. */
  readonly script: string
}

/** The sandbox of this agent's scripts (`agent run --sandbox`). */
export interface Sandbox {
  readonly mode: SandboxMode
  /** Throws RsmError `forbidden` if scripts may not run as this user. */
  admit(account: Account): void
  /** Whether a path of the host is hidden from scripts of this user. */
  hides(path: string, account: Account): boolean
  /** Command that runs a script in the sandbox; null without a sandbox. */
  enclose(account: Account, boxed: Boxed): string[] | null
}

interface SandboxOptions {
  readonly mode: SandboxMode
  /** Whether scripts in a strict sandbox reach the network. */
  readonly network: boolean
  readonly dataDir: string
  readonly own: Account
  /** Search path for bubblewrap, if not that of scripts. */
  readonly path?: string
}

const scriptDirectory = '/run/rsm'

/** Runs in the sandbox before the switch to the script's user: makes the empty directories writable. */
const prepare = `while [ "$1" != -- ]; do chmod 1777 "$1" || exit 126; shift; done
shift; exec "$@"`

/** Replaced by empty directories, because they hold files, sockets and secrets of other users. */
const hiddenDirectories = ['/home', '/root', '/run', '/tmp', '/var/tmp', '/mnt', '/media']
const writableDirectories = ['/tmp', '/var/tmp']

/** Files that /etc/resolv.conf may link to. */
const resolvers = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager']

function words(text: string): string[] {
  return text.split(' ')
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory() && realpathSync(path) === path
  } catch {
    return false
  }
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(`${directory}/`)
}

/** Modes without isolation: `none` allows all users, `user` all but root and the agent's own. */
function openDoor(mode: 'none' | 'user', own: Account): Sandbox {
  return {
    mode,
    admit(account) {
      if (mode === 'user' && (account.uid === 0 || account.uid === own.uid))
        throw new RsmError(
          'forbidden',
          `not allowed to run as ${account.name}: --sandbox user forbids root and the agent's own user`,
        )
    },
    hides: () => false,
    enclose: () => null,
  }
}

/** For the agent's own work. */
export const withoutSandbox = (own: Account): Sandbox => openDoor('none', own)

/**
 * bubblewrap: own namespaces for processes, mounts, IPC, host name and, unless allowed, the network. Without
 * `--die-with-parent`, because background processes of a script live on (contract §4). Without
 * `--new-session`, because the wrapper outside has made a session without a terminal, which identifies its
 * processes.
 */
function strict({ network, dataDir, own }: SandboxOptions): Sandbox {
  const hidden = hiddenDirectories.filter(isDirectory)
  const writable = writableDirectories.filter((path) => hidden.includes(path))
  const data = realpathSync(dataDir)
  const empty = [...hidden, ...(hidden.some((path) => isWithin(data, path)) ? [] : [data])]
  const box = [
    // Read-only /proc, because uid 0 may write machine-wide settings there without any capability.
    ...words('--ro-bind / / --dev /dev --proc /proc --remount-ro /proc'),
    ...empty.flatMap((path) => ['--tmpfs', path]),
    ...(network ? resolvers.flatMap((path) => ['--ro-bind-try', path, path]) : ['--unshare-net']),
    ...words('--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --cap-drop ALL'),
    ...words(`--chdir / --dir ${scriptDirectory}`),
  ]
  const isHidden = (path: string) => empty.some((directory) => isWithin(path, directory))
  return {
    mode: 'strict',
    admit: () => {},
    hides: (path, { home }) => isHidden(path) && !empty.includes(path) && path !== home,
    enclose(account, { enter, workDir, interpreter, script }) {
      const path = `${scriptDirectory}/${basename(script)}`
      const home = isHidden(account.home) ? [account.home] : []
      const isOther = account.uid !== own.uid
      // The first process in the sandbox switches users with these capabilities, and loses them by that.
      const capabilities = isOther ? ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'] : []
      return [
        'bwrap',
        ...box,
        '--ro-bind',
        script,
        path,
        ...home.flatMap((path) => ['--dir', path]),
        ...capabilities.flatMap((name) => ['--cap-add', name]),
        '--',
        'sh',
        '-c',
        prepare,
        'sh',
        '/dev/shm',
        ...writable,
        ...home,
        '--',
        ...(isOther ? dropTo(account) : []),
        'sh',
        '-c',
        enter,
        'sh',
        workDir,
        ...interpreter,
        path,
      ]
    },
  }
}

/** Runs `true` in the sandbox, to test the host. */
async function probe(sandbox: Sandbox, account: Account, path: string): Promise<void> {
  const nothing = { enter: 'shift; exec "$@"', workDir: '/', interpreter: ['true'], script: '/dev/null' }
  await run('sh', ['-c', sandbox.enclose(account, nothing)?.map(quoted).join(' ') ?? 'true'], {
    timeout: probePatience,
    env: { PATH: path },
  }).catch((cause: unknown) => {
    const stderr = cause instanceof Error && 'stderr' in cause ? String(cause.stderr).trim() : ''
    const isMissing = /bwrap: (command )?not found/.test(stderr)
    const reason = isMissing ? 'bubblewrap is not installed' : stderr || String(cause)
    throw new RsmError('unavailable', `this host cannot run scripts with --sandbox strict: ${reason}`, {
      hint: isMissing
        ? 'install bubblewrap, or choose another --sandbox'
        : 'the kernel must allow namespaces: run the agent as root, or allow unprivileged user namespaces',
      cause,
    })
  })
}

/**
 * @throws RsmError `usage` if scripts would run as a user that the mode forbids, `unavailable` if this host
 * cannot provide the sandbox. `account` is the default user of scripts.
 */
export async function openSandbox(options: SandboxOptions, account: Account): Promise<Sandbox> {
  const { mode, own } = options
  if (mode !== 'strict') {
    const sandbox = openDoor(mode, own)
    if (mode === 'user' && own.uid !== 0)
      throw new RsmError(
        'usage',
        `--sandbox user runs scripts as another user, and this agent runs as ${own.name}`,
        {
          hint: 'start the agent as root, with --run-as USER',
        },
      )
    if (mode === 'user' && account.uid === own.uid)
      throw new RsmError(
        'usage',
        "--sandbox user needs --run-as with a user other than root and the agent's own",
      )
    sandbox.admit(account)
    return sandbox
  }
  const sandbox = strict(options)
  await probe(sandbox, account, options.path ?? searchPath)
  return sandbox
}
