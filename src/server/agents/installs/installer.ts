import { createReadStream } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { readJoin } from '../../../core/endpoint.ts'
import { architectures, buildName } from '../../../core/release.ts'
import { printable } from '../../../core/text/printable.ts'
import { type Clock, isoTime } from '../../../disk/clock.ts'
import { type Executable, GivenUp, install, type Patience } from '../../../ssh/conversation.ts'
import { type Joined, readInstalled } from '../../../ssh/remote-install.ts'
import { newToken } from '../../access/credentials.ts'
import type { LocalFacts } from '../../storage/local-facts.ts'
import type { Links } from '../../storage/ports/cluster.ts'
import type { Keys } from '../../storage/ports/keys.ts'
import type { Store } from '../../storage/ports/store.ts'
import type { HostRecord } from '../../storage/records/host.ts'
import type { TaskRecord } from '../../storage/records/task.ts'
import type { Joining } from '../releases/handed-out.ts'
import type { Releases } from '../releases/releases.ts'
import { type Access, accessOf, type Connection, connect, InstallFault } from './connection.ts'
import { InstallOutput, type Say } from './output.ts'

interface InstallerParts {
  readonly store: Store
  readonly keys: Keys
  readonly links: Links
  readonly facts: LocalFacts
  readonly clock: Clock
  readonly releases: Pick<Releases, 'find'>
  readonly joining: Pick<Joining, 'describe'>
}

interface Going {
  readonly say: Say
  /** Aborts the installation; processes on the host may continue. */
  readonly signal: AbortSignal
}

/** Installs the agent over SSH; resolves when this server has its link. Errors: InstallFault, or the abort reason. */
export type Install = (task: TaskRecord, hostId: number, going: Going) => Promise<void>

/** Milliseconds. */
const loginWithin = 30_000
const patience: Patience = { start: 30_000, inspect: 60_000, piece: 60_000, place: 200_000, install: 200_000 }

export function createInstaller(parts: InstallerParts): Install {
  const { store, keys, releases, joining } = parts

  async function executableFor(arch: string, say: Say): Promise<Executable> {
    const known = architectures.find((one) => one === arch)
    const name = known === undefined ? `rsm-linux-${printable(arch).slice(0, 32)}` : buildName(known)
    const { path, sha256, size } = await releases.find(name).catch(() => {
      throw new InstallFault(`this server has no ${name}; on its machine: rsm server releases add ${name}`, 1)
    })
    const open = () => {
      say('stdout', `rsm: copying ${name}, ${Math.ceil(size / 1e6)} MB\n`)
      return createReadStream(path)
    }
    return { sha256, size, open }
  }

  async function installOver(
    connection: Connection,
    access: Access,
    host: HostRecord,
    task: TaskRecord,
    { say, signal }: Going,
  ): Promise<void> {
    const withSudo = task.install?.sudo === true && access.username !== 'root'
    const sudo = !withSudo ? 'none' : access.password === null ? 'silent' : 'password'
    const output = new InstallOutput(say, sudo)
    let token: { readonly made: HostToken; readonly join: string } | undefined

    async function joinString(): Promise<string> {
      const made = await hostToken(parts, host, task.createdBy)
      const { url, fingerprint } = task.install ?? {}
      const { join } = await joining.describe(made.token, { url, fingerprint: fingerprint ?? undefined })
      if (join !== null) {
        token = { made, join }
        return join
      }
      await made.drop()
      throw new InstallFault('this server does not know its own URL: start it with --public-url', 1)
    }

    const { exit, step, result } = await install({
      open: (line) => connection.run(line, patience.start),
      sudo,
      sudoPassword: sudo === 'password' ? (access.password ?? undefined) : undefined,
      options: ['--yes'],
      patience,
      signal,
      onLine: (stream, line) => output.heard(stream, line),
      found: (program) => say('stdout', `rsm: ${program} is there already\n`),
      executableFor: (arch) => executableFor(arch, say),
      joinString,
    }).catch((error: unknown) => {
      if (!(error instanceof GivenUp)) throw error
      throw output.refusal ?? new InstallFault(error.message, error.silent === null ? 1 : 255)
    })
    if (output.refusal !== null) throw output.refusal
    const code = exit ?? 'no exit code'
    if (step !== 'installing' || token === undefined)
      throw new InstallFault(
        output.reason ?? `the installer ended with ${code} and no error message`,
        exit || 1,
      )
    const installed = readInstalled(result)
    for (const what of installed?.changes ?? []) say('stdout', `${what}\n`)
    if (exit !== 0) throw new InstallFault(output.reason ?? `rsm agent install ended with ${code}`, exit ?? 1)
    const joined = installed?.joined ?? null
    // The agent is linked, so the token is no longer needed.
    if (joined !== null) await token.made.drop()
    await untilLinked(parts, host, { enrollmentId: token.made.id, joined }, signal)
    const { id, hostname } = host
    const server = readJoin(token.join).url
    say('stdout', `rsm-agent runs and is linked: this is host ${hostname} (@id:${id}) of ${server}\n`)
  }

  /** Removes the credentials unless they were replaced meanwhile. */
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
    const judge = (hostKey: string) => key.judge(hostKey)
    const connection = await connect({ access, judge, within: loginWithin, signal })
    const stop = () => connection.close()
    signal.addEventListener('abort', stop, { once: true })
    try {
      signal.throwIfAborted()
      const pinned = key.taken === null ? '' : `; its host key is pinned from now on: ${key.taken}`
      say('stdout', `rsm: logged in to ${access.ip}:${access.port} as ${access.username}${pinned}\n`)
      await installOver(connection, access, host, task, going)
      if (task.install?.forgetCredentials) await forget(host)
    } finally {
      signal.removeEventListener('abort', stop)
      connection.close()
    }
  }
}

interface PinnedKey {
  judge(key: string): Promise<string | null>
  /** The key that was pinned now because it was the first; null otherwise. */
  readonly taken: string | null
}

/**
 * Pins the first key of a host, on disk before any credential is sent. From then on accepts only that key, until an ADMIN
 * clears it (contract §10).
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
        // Do not send the credentials to an address they were not stored for.
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

interface Traces {
  readonly enrollmentId: number
  /** The linked agent, as the host reports it. */
  readonly joined: Joined | null
}

/** Milliseconds after `rsm agent install` reports the link. */
const linkWithin = 30_000
const pollInterval = 100

/** Milliseconds: an installation may continue on the host, and need the token, after the task gave up. */
const tokenLife = 3600_000

/** Resolves when a server of this store has the link of the installed agent. Errors: InstallFault. */
async function untilLinked(
  parts: Pick<InstallerParts, 'store' | 'links'>,
  host: HostRecord,
  traces: Traces,
  signal: AbortSignal,
): Promise<void> {
  const agentId = await installedAgent(parts, host, traces)
  for (const end = performance.now() + linkWithin; performance.now() < end; ) {
    if ((await parts.links.holders([host.id])).get(host.id)?.agentId === agentId) return
    await delay(pollInterval)
    signal.throwIfAborted()
  }
  throw new InstallFault(`the agent was installed, but this server has no link of ${host.hostname}`, 1)
}

/**
 * Id of the installed agent: the one that registered with the token. If none did, the agent had joined before, and
 * only the host knows its id; it may even belong to another host record.
 */
async function installedAgent(
  { store }: Pick<InstallerParts, 'store'>,
  { id, hostname, ip, sshPort }: HostRecord,
  { enrollmentId, joined }: Traces,
): Promise<string> {
  const agent = (await store.get('hosts', id))?.agent ?? null
  if (agent?.enrollmentId === enrollmentId || (agent !== null && agent.agentId === joined?.agentId))
    return agent.agentId
  const place = `${ip}:${sshPort}`
  if (joined === null)
    throw new InstallFault(`rsm agent install on ${place} does not report which agent is linked`, 1)
  const there = `${printable(joined.hostname).slice(0, 64)} (@id:${joined.hostId})`
  if (joined.hostId !== id)
    throw new InstallFault(
      `${place} is not ${hostname}: its agent belongs to ${there}. Fix the address: rsm hosts edit ${hostname} --ip ADDRESS`,
      1,
    )
  throw new InstallFault(`the agent on ${place} is not the one that ${hostname} has now; install it again`, 1)
}

/** Single-use enrollment token for an existing host (contract §3). */
interface HostToken {
  readonly id: number
  readonly token: string
  /** Removes the token if it is unused. */
  drop(): Promise<void>
}

async function hostToken(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  { id: hostId, hostname }: HostRecord,
  createdBy: string,
): Promise<HostToken> {
  const { token, tokenHash } = newToken('enrollment')
  const now = clock.now()
  const id = await store.transact(async (tx) => {
    const id = await tx.nextId('enrollments')
    tx.put('enrollments', {
      id,
      name: `install of ${hostname}`,
      tokenHash,
      maxUses: 1,
      uses: 0,
      tags: {},
      clusterId: null,
      hostId,
      createdBy,
      createdAt: isoTime(now),
      expiresAt: isoTime(now + tokenLife),
    })
    return id
  })
  return {
    id,
    token,
    drop: () =>
      store.transact(async (tx) => {
        if ((await tx.get('enrollments', id))?.uses === 0) tx.remove('enrollments', id)
      }),
  }
}
