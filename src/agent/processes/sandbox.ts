import { execFile } from 'node:child_process'
import { realpathSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { RsmError } from '../../core/errors.ts'
import type { SandboxMode } from '../../core/hosts/host.ts'
import type { Account } from './account.ts'
import { dropTo } from './account.ts'
import { quoted } from './own-process.ts'
import { searchPath } from './search-path.ts'

const run = promisify(execFile)
const probePatience = 20_000

/** What runs a script, before the script's own path. */
export type Interpreter = readonly string[]

/** The script to run in a box. */
export interface Boxed {
  /** Shell command run as the script's user; `$1` is the working directory. */
  readonly enter: string
  readonly workDir: string
  readonly interpreter: Interpreter
  /** Path on the host. */
  readonly script: string
}

/** The box in which this agent's scripts run (`agent run --sandbox`). */
export interface Sandbox {
  readonly mode: SandboxMode
  /** Throws RsmError `forbidden` where nothing may run as this user here. */
  admit(account: Account): void
  /** Whether a path of the host is not there for a script that runs as this user. */
  hides(path: string, account: Account): boolean
  /** The command that runs a script in the box. Null where there is no box. */
  enclose(account: Account, boxed: Boxed): string[] | null
}

interface SandboxOptions {
  readonly mode: SandboxMode
  /** Whether scripts in a strict sandbox reach the network. */
  readonly network: boolean
  /** The agent's data directory. */
  readonly dataDir: string
  readonly own: Account
  /** Where bubblewrap is looked for, if not where scripts find programs. */
  readonly path?: string
}

/** Directory of the script inside the box. */
const scriptDirectory = '/run/rsm'

/** Runs in the box before the switch to the script's user: makes the empty directories writable. */
const prepare = `while [ "$1" != -- ]; do chmod 1777 "$1" || exit 126; shift; done
shift; exec "$@"`

/** Hidden behind empty directories: where others keep their files, sockets and secrets. */
const hiddenDirectories = ['/home', '/root', '/run', '/tmp', '/var/tmp', '/mnt', '/media']
const writableDirectories = ['/tmp', '/var/tmp']

/** Where name resolution keeps what /etc/resolv.conf points to. */
const resolvers = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager']

/** Words without spaces of their own. */
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

/** Without limits on whom scripts run as, or with: no script as root or as the agent itself. */
function openDoor(mode: 'none' | 'user', own: Account): Sandbox {
  return {
    mode,
    admit(account) {
      if (mode === 'user' && (account.uid === 0 || account.uid === own.uid))
        throw new RsmError(
          'forbidden',
          `not allowed to run as ${account.name}: --sandbox user takes only users other than root and the agent's own`,
        )
    },
    hides: () => false,
    enclose: () => null,
  }
}

/** For what is the agent's own. */
export const withoutSandbox = (own: Account): Sandbox => openDoor('none', own)

/**
 * bubblewrap: namespaces of its own for processes, mounts, IPC, host name and, unless allowed, the network. What it is
 * not given: `--die-with-parent`, as what a script leaves in the background lives on (contract §4), and `--new-session`,
 * as the wrapper outside has made a session without a terminal, by which its processes are found again.
 */
function strict({ network, dataDir, own }: SandboxOptions): Sandbox {
  const hidden = hiddenDirectories.filter(isDirectory)
  const writable = writableDirectories.filter((path) => hidden.includes(path))
  const data = realpathSync(dataDir)
  const empty = [...hidden, ...(hidden.some((path) => isWithin(data, path)) ? [] : [data])]
  const box = [
    // All of /proc, as uid 0 may write to settings of the whole machine there without any capability.
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
      // With those the first process in the box becomes the script's user, and loses them by it.
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

/** Runs nothing in the box, to see whether this host can. */
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
        : 'the kernel has to allow namespaces: run the agent as root, or allow unprivileged user namespaces',
      cause,
    })
  })
}

/**
 * @throws RsmError `usage` when scripts would run as a user that the mode rules out, `unavailable` when this host can't
 * make the box. `account` is the user that scripts run as by default.
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
        '--sandbox user needs --run-as with a user that is neither root nor the agent itself',
      )
    sandbox.admit(account)
    return sandbox
  }
  const sandbox = strict(options)
  await probe(sandbox, account, options.path ?? searchPath)
  return sandbox
}
