import { readJoin } from '../../../core/join/join-string.ts'
import { architectures, buildName } from '../../../core/release.ts'
import { printable } from '../../../core/text/printable.ts'
import type { Clock } from '../../../disk/clock.ts'
import { ownText } from '../../../disk/own-files.ts'
import type { LocalFacts } from '../../storage/local-facts.ts'
import type { Links } from '../../storage/ports/cluster.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { HostRecord } from '../../storage/records/host.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { Joining } from '../releases/handed-out.ts'
import type { HandedFile, Releases } from '../releases/releases.ts'
import { accessOf, connect, InstallFault } from './connection.ts'
import { Conversation, type Say, usualPatience } from './conversation.ts'
import { hostToken, untilLinked } from './joined-agent.ts'

interface InstallerParts {
  readonly store: Store
  readonly keys: Keys
  readonly links: Links
  readonly facts: LocalFacts
  readonly clock: Clock
  readonly releases: Pick<Releases, 'find'>
  readonly joining: Pick<Joining, 'describe'>
}

/** Output and abort signal of the installation on one host. */
interface Going {
  readonly say: Say
  /** Ends it; what has begun on the host may continue there. */
  readonly signal: AbortSignal
}

/**
 * Installs the agent on a host over SSH, with the host's stored credentials, and resolves when this server has its link. Errors:
 * InstallFault, which says why not; whatever the signal is aborted with.
 */
export type Install = (task: TaskRecord, hostId: number, going: Going) => Promise<void>

const packaged = '/usr/bin/rsm'
const placed = '/usr/local/bin/rsm'

export function createInstaller(parts: InstallerParts): Install {
  const { store, keys, releases, joining } = parts
  const patience = usualPatience

  async function buildFor(arch: string): Promise<{ name: string; file: HandedFile }> {
    const known = architectures.find((one) => one === arch)
    const name = known === undefined ? `rsm-linux-${printable(arch).slice(0, 32)}` : buildName(known)
    const file = await releases.find(name).catch(() => {
      throw new InstallFault(`this server has no ${name}; on its machine: rsm server releases add ${name}`, 1)
    })
    return { name, file }
  }

  /** Resolves when the executable is in its place. */
  async function provide(talk: Conversation, say: Say): Promise<void> {
    const [arch = '', there, ofPackage] = await talk.heard('host', patience.look)
    const { name, file } = await buildFor(arch)
    const { sha256, size, path } = file
    if (there === sha256 || ofPackage === sha256) {
      const program = there === sha256 ? placed : packaged
      say('stdout', `rsm: ${program} is there already\n`)
      talk.tell(`use ${program}`)
    } else {
      say('stdout', `rsm: copying ${name}, ${Math.ceil(size / 1e6)} MB\n`)
      talk.tell(`copy ${sha256} ${size}`)
      await talk.send(path)
    }
    await talk.heard('ready', patience.step)
  }

  /** Resolves when the installed agent is linked as this host. */
  async function joinAs(talk: Conversation, host: HostRecord, task: TaskRecord, going: Going): Promise<void> {
    const made = await hostToken(parts, host, task.createdBy)
    const { url, fingerprint } = task.install ?? {}
    const told = await joining.describe(made.token, { url, fingerprint: fingerprint ?? undefined })
    if (told.join === null) {
      await made.drop()
      throw new InstallFault('this server does not know its own URL: start it with --public-url', 1)
    }
    talk.tellLast(told.join)
    const { exitCode, words, installed } = await talk.over(patience.step)
    for (const what of installed?.changes ?? []) going.say('stdout', `${what}\n`)
    if (exitCode !== 0)
      throw new InstallFault(
        words ?? `rsm agent install ended with ${exitCode ?? 'no exit code'}`,
        exitCode ?? 1,
      )
    const joined = installed?.joined ?? null
    // The agent is linked; whatever it is, it needs this one no more.
    if (joined !== null) await made.drop()
    await untilLinked(parts, host, { enrollmentId: made.id, joined }, going.signal)
    const { id, hostname } = host
    const server = readJoin(told.join).url
    going.say('stdout', `rsm-agent runs and is linked: this is host ${hostname} (@id:${id}) of ${server}\n`)
  }

  /** Removes the credentials unless others were stored meanwhile. */
  async function forget({ id, password, privateKey }: HostRecord): Promise<void> {
    await store.transact(async (tx) => {
      const current = await tx.get('hosts', id)
      if (current?.password !== password || current.privateKey !== privateKey) return
      tx.put('hosts', { ...current, authType: 'NONE', password: null, privateKey: null })
    })
  }

  return async (task, hostId, going) => {
    const { say, signal } = going
    const host = await store.get('hosts', hostId)
    if (!host) throw new InstallFault('the host was removed', 1)
    const access = accessOf(host, keys)
    const key = pinnedKey(parts, host)
    const judge = (shown: string) => key.judge(shown)
    const connection = await connect({ access, judge, within: patience.first, signal })
    const stop = () => connection.close()
    signal.addEventListener('abort', stop, { once: true })
    try {
      signal.throwIfAborted()
      const pinned = key.taken === null ? '' : `; its host key is pinned from now on: ${key.taken}`
      say('stdout', `rsm: logged in to ${access.ip}:${access.port} as ${access.username}${pinned}\n`)
      const withSudo = task.install?.sudo === true && access.username !== 'root'
      const script = ownText('packaging/install.sh')
      const sudo = !withSudo ? 'none' : access.password === null ? 'silent' : 'password'
      const talk = await Conversation.begin(connection, {
        sudo,
        sudoPassword: access.password,
        script,
        say,
        patience,
        signal,
      })
      await provide(talk, say)
      await joinAs(talk, host, task, going)
      if (task.install?.forgetCredentials) await forget(host)
    } finally {
      signal.removeEventListener('abort', stop)
      connection.close()
    }
  }
}

/** The pinned key of a host, against which the key that it shows is judged. */
interface PinnedKey {
  judge(key: string): Promise<string | null>
  /** The key that was pinned now, because it was the first; null otherwise. */
  readonly taken: string | null
}

/**
 * The first key that a host shows is pinned, on disk before a credential leaves; another one is refused from then on (contract
 * §10), until an ADMIN forgets it.
 */
function pinnedKey({ store, facts }: Pick<InstallerParts, 'store' | 'facts'>, host: HostRecord): PinnedKey {
  const { id, hostname, ip, sshPort } = host
  let taken: string | null = null
  return {
    get taken() {
      return taken
    },
    async judge(key) {
      const pinned = await store.transact(async (tx) => {
        const current = await tx.get('hosts', id)
        // What was opened may not go where it was not meant for.
        if (!current || current.ip !== ip || current.sshPort !== sshPort) return null
        const before = current.hostKey ?? null
        if (before === null) tx.put('hosts', { ...current, hostKey: key })
        return { before }
      })
      if (pinned === null) return `${hostname} was changed or removed meanwhile; nothing was sent`
      if (pinned.before === null) {
        taken = key
        facts.publish('hostKeyPinned', { hostId: id, hostname, key })
        return null
      }
      if (pinned.before === key) return null
      return (
        `host key changed: ${pinned.before} is pinned, and ${key} was shown; nothing was sent. ` +
        `Once you know that it is the right host: rsm hosts edit ${hostname} --host-key ''`
      )
    },
  }
}
