import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Client } from '../../client/client.ts'
import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import type { EnrollmentCreate, EnrollmentCreated } from '../../core/protocol/http/agent.ts'
import { expandNodeset } from '../../core/selector/nodeset.ts'
import { isOnPath } from '../command/own-command.ts'
import type { FlagsOf } from '../flags/checks.ts'
import type { sshFlags } from '../flags/hosts.ts'
import { ask } from '../input/prompt.ts'
import { counted } from '../text/amounts.ts'
import { isWatched, withSpinner } from '../text/screen.ts'
import { openExecutables } from './executables.ts'
import { type JoinSetting, joinHost } from './join-host.ts'
import { cancelled, exitOfJoins, type JoinOutcome, showJoins, textOf } from './outcome.ts'

/** Hosts at once: sshd refuses logins from the eleventh pending one (MaxStartups), also on a jump host. */
const usualConcurrency = 8

type SshFlags = FlagsOf<typeof sshFlags> & { readonly ssh: string; readonly yes: boolean }

interface Screen {
  done(text: string): void
  print(text: string): void
  notice(text: string): void
}

interface JoinRequest extends Omit<JoinSetting, 'executableFor' | 'joinString'> {
  readonly hosts: readonly string[]
  /** Hosts in parallel. */
  readonly concurrency: number
  /** Settings of each host's token. */
  readonly enrollment: EnrollmentCreate
  /** Called with the first token. */
  readonly made: (token: EnrollmentCreated) => void
  readonly version: string
  readonly ended: (outcome: JoinOutcome) => void
  /** Current step of each host in progress. */
  readonly doing: (now: ReadonlyMap<string, string>) => void
}

/** `rsm hosts join --ssh`: shows the outcome of each host, and sets the exit code (contract §9). */
export async function joinOverSsh(
  screen: Screen,
  by: Pick<JoinRequest, 'enrollment' | 'version' | 'made'> & { readonly client: Client },
  flags: SshFlags,
): Promise<{ hosts: JoinOutcome[] }> {
  const hosts = namesOf(flags.ssh)
  const sudoPassword = flags['ask-sudo-password']
    ? await ask(`Password of sudo on ${counted(hosts.length, 'host')}: `, {
        hidden: true,
        instead: 'use --sudo with passwordless sudo',
      })
    : undefined
  const signals = onSignals()
  const began = performance.now()
  const outcomes = new Map<string, JoinOutcome>()
  await withSpinner(counted(hosts.length, 'host'), (say) =>
    joinHosts(by.client, {
      ...by,
      hosts,
      concurrency: flags.concurrency ?? usualConcurrency,
      user: flags['ssh-user'],
      jump: flags.jump,
      acceptNew: flags['accept-new'],
      sudo: sudoPassword === undefined ? (flags.sudo ? 'silent' : 'none') : 'password',
      sudoPassword,
      prefix: flags.prefix,
      yes: flags.yes,
      signal: signals.signal,
      doing: (now) => say(progress(outcomes.size, hosts.length, now)),
      ended(outcome) {
        outcomes.set(outcome.host, outcome)
        if (!isWatched() && hosts.length > 1) screen.notice(`${outcome.host}: ${textOf(outcome)}`)
      },
    }),
  ).finally(() => signals.stop())
  const all = hosts.flatMap((host) => outcomes.get(host) ?? [])
  const { joined, failed, sum } = showJoins(all, performance.now() - began)
  for (const line of joined) screen.done(line)
  if (failed.length > 0) process.stderr.write(`${failed.join('\n')}\n`)
  screen.notice(sum)
  process.exitCode = signals.exit() ?? exitOfJoins(all)
  return { hosts: all }
}

function namesOf(ssh: string): string[] {
  const hosts = expandNodeset(ssh, '--ssh')
  if (hosts.length > 0) return hosts
  throw new RsmError('usage', `${ssh} matches no host`, { hint: "--ssh 'web[01-20]'" })
}

/** `12 of 20 hosts; web13 copying 45 %, web14 connecting`. */
function progress(ended: number, all: number, now: ReadonlyMap<string, string>): string {
  const some = [...now].slice(0, 3).map(([host, what]) => `${host} ${what}`)
  return [`${ended} of ${counted(all, 'host')}`, some.join(', ')].filter((part) => part !== '').join('; ')
}

/** Aborts on SIGINT or SIGTERM; a second one ends the process. */
function onSignals(): {
  readonly signal: AbortSignal
  readonly exit: () => number | undefined
  stop(): void
} {
  const stopping = new AbortController()
  let exit: number | undefined
  const halt = (code: number) => () => {
    if (exit !== undefined) process.exit(code)
    exit = code
    stopping.abort()
  }
  const [onInt, onTerm] = [halt(130), halt(143)]
  process.on('SIGINT', onInt)
  process.on('SIGTERM', onTerm)
  return {
    signal: stopping.signal,
    exit: () => exit,
    stop() {
      process.off('SIGINT', onInt)
      process.off('SIGTERM', onTerm)
    },
  }
}

/**
 * Joins hosts over the user's OpenSSH (contract §10). Before any host is contacted, throws errors that affect all: no ssh, no
 * executable to copy, no right to create tokens.
 */
async function joinHosts(client: Client, request: JoinRequest): Promise<void> {
  if (!isOnPath('ssh', process.env['PATH'] ?? ''))
    throw new RsmError('unavailable', 'there is no ssh on the PATH', {
      hint: 'install the OpenSSH client: apt-get install openssh-client, or dnf install openssh-clients',
    })
  const directory = await mkdtemp(join(tmpdir(), 'rsm-join-'))
  try {
    const executableFor = await openExecutables(client, directory, request.version)
    const tokens = await openTokens(client, request)
    try {
      await joinAll(tokens, { ...request, executableFor }, request)
    } finally {
      // Unused tokens expire; the hosts' outcomes matter more.
      await tokens.tidy().catch(() => {})
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Joins hosts with limited concurrency until none are left. */
async function joinAll(
  tokens: Tokens,
  setting: Omit<JoinSetting, 'joinString' | 'signal'>,
  request: JoinRequest,
): Promise<void> {
  const { ended } = request
  const stop = new AbortController()
  const signal = AbortSignal.any([request.signal, stop.signal])
  const waiting = [...request.hosts]
  const now = new Map<string, string>()
  const killAll = () => stop.abort()
  async function join(host: string): Promise<void> {
    let token: Token | undefined
    const joinString = async () => {
      token = await tokens.next()
      return token.join
    }
    const tell = (what: string) => request.doing(now.set(host, what))
    const outcome = await joinHost(host, { ...setting, joinString, signal }, tell)
    if (token !== undefined && outcome.status !== 'JOINED') tokens.leave(token.id)
    now.delete(host)
    ended(outcome)
  }
  const work = async () => {
    for (let host = waiting.shift(); host !== undefined; host = waiting.shift())
      await (signal.aborted ? ended(cancelled(host)) : join(host))
  }
  // A second Ctrl-C ends the process immediately.
  process.on('exit', killAll)
  try {
    await Promise.all(Array.from({ length: request.concurrency }, work))
  } finally {
    // After an unexpected error, others may still be running.
    killAll()
    process.off('exit', killAll)
  }
}

interface Token {
  readonly id: number
  readonly join: string
}

type Tokens = Awaited<ReturnType<typeof openTokens>>

/** Single-use tokens; the first is created before any host is contacted, to report missing rights at once. */
async function openTokens(client: Client, { enrollment, made }: Pick<JoinRequest, 'enrollment' | 'made'>) {
  const unused = new Set<number>()
  async function make() {
    const created = await client.enrollments.create({ ...enrollment, maxUses: 1 })
    const { id, join: text } = created
    unused.add(id)
    if (text !== null) return { created, token: { id, join: text } }
    throw new RsmError('unavailable', 'the server is too old to make join strings', {
      hint: 'upgrade the server',
    })
  }
  const first = await make()
  made(first.created)
  let spare: Token | undefined = first.token
  return {
    async next(): Promise<Token> {
      const token = spare
      spare = undefined
      return token ?? (await make()).token
    },
    /** Keeps the token of a host that did not join, because its service may still use it. */
    leave: (id: number) => unused.delete(id),
    /** Removes unused tokens: those of hosts that had already joined, and the first if no host needed it. */
    async tidy(): Promise<void> {
      const { content } = await allPages((query) => client.enrollments.list(query), {})
      for (const { id, uses } of content)
        if (unused.has(id) && uses === 0) await client.enrollments.remove(id)
    },
  }
}
