import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import { expandNodeset } from '../../core/selector/nodeset.ts'
import type { FlagsOf } from '../flags/given.ts'
import type { sshFlags } from '../flags/hosts.ts'
import { ask } from '../input/prompt.ts'
import { counted } from '../text/amounts.ts'
import { isWatched, withSpinner } from '../text/screen.ts'
import { type JoinRequest, joinHosts } from './join-hosts.ts'
import { exitOfJoins, type JoinOutcome, showJoins, textOf } from './outcome.ts'

/** Hosts at once: sshd refuses logins from the eleventh pending one (MaxStartups), also on a jump host. */
const usualConcurrency = 8

type SshFlags = FlagsOf<typeof sshFlags> & { readonly ssh: string; readonly yes: boolean }

interface Screen {
  done(text: string): void
  print(text: string): void
  notice(text: string): void
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
