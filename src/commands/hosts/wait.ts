import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { Halted, timedOutExit } from '../../cli/command/failure.ts'
import { anyNumber } from '../../cli/flags/checks.ts'
import { hostsFlag } from '../../cli/flags/hosts.ts'
import { foldStanding } from '../../cli/hosts/standing.ts'
import { parseTimer } from '../../cli/input/values.ts'
import { selectHosts } from '../../cli/names/names.ts'
import { withSpinner } from '../../cli/text/screen.ts'
import { showDuration } from '../../cli/text/time.ts'
import type { Client } from '../../client/client.ts'
import type { Api } from '../../client/http/api.ts'
import { allPages } from '../../client/http/pages.ts'
import { watchEvents } from '../../client/watch.ts'
import { RsmError } from '../../core/errors.ts'
import { canBeReached, shownStatus, statusWord, statusWords } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { expandNodeset, foldNodeset } from '../../core/selector/nodeset.ts'
import type { FollowOptions } from '../../net/event-stream.ts'

interface Awaited {
  readonly hosts: readonly Host[]
  /** Names without a host yet. */
  readonly missing: readonly string[]
}

/** Matches names locally, because the server refuses a selector with unknown names. */
async function standingOfNew(client: Client, selector: string): Promise<Awaited> {
  const names = expandNodeset(selector)
  const wanted = new Set(names.map((name) => name.toLowerCase()))
  const hosts = (await allPages((query) => client.hosts.list(query), {})).content.filter((host) =>
    wanted.has(host.hostname.toLowerCase()),
  )
  const there = new Set(hosts.map((host) => host.hostname.toLowerCase()))
  return { hosts, missing: names.filter((name) => !there.has(name.toLowerCase())) }
}

export default class HostsWait extends BaseCommand {
  static override summary = 'Wait until hosts can be reached'
  static override description =
    'Exit code: 0 once all can be reached, 124 after --timeout. By default it waits until scripts can reach the ' +
    'hosts, as @reachable selects them; --status waits for a status instead.'
  static override examples = [
    "$ rsm hosts wait 'web[1-3]' --timeout 2m",
    '$ rsm hosts wait --new web4 && rsm exec -w web4 --script ./setup.sh',
    '$ rsm hosts wait web1 --status OFFLINE',
  ]
  static override args = {
    selector: anyNumber("hosts, like 'web[1-3]', matched at the start"),
  }
  static override flags = {
    hosts: hostsFlag,
    status: string({
      options: statusWords,
      description: 'wait for this status (default: reachable)',
    }),
    new: boolean({ description: 'also wait for names that do not exist yet' }),
    timeout: string({
      char: 'u',
      helpValue: 'TIME',
      default: '5m',
      description: 'give up after this time, like 90s or 5m',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsWait)
    const selector = [...(args.selector ?? []), ...(flags.hosts ?? [])].join(',')
    if (selector === '')
      throw new RsmError('usage', 'missing SELECTOR', {
        hint: 'rsm hosts list shows them; rsm hosts wait --help',
      })
    const seconds = parseTimer('--timeout', flags.timeout)
    const { status } = flags
    const isThere = (host: Host) =>
      status === undefined ? canBeReached(host) : statusWord(shownStatus(host)) === status
    const client = await this.client()
    const read = async (): Promise<Awaited> => {
      if (flags.new) return standingOfNew(client, selector)
      return { hosts: await selectHosts(client, { selector }), missing: [] }
    }
    const over = AbortSignal.timeout(seconds * 1000)
    const onCut = (error: RsmError, again: boolean) => {
      if (!again) this.notice(`${error.message}; trying again`)
    }
    const waited = () =>
      awaitHosts(client.api, { read, isThere, onCut, signal: over, retryFor: seconds * 1000 })
    const state = status ?? 'reachable'
    try {
      const hosts = await (flags.quiet ? waited() : withSpinner(`waiting for ${selector}: ${state}`, waited))
      this.done(`${foldNodeset(hosts.map((host) => host.hostname))}: ${state}`)
      return { hosts }
    } catch (error) {
      if (!over.aborted) throw error
      // Events report only changes, so read the current reasons.
      const { hosts, missing } = await read()
      const late = foldStanding(hosts.filter((host) => !isThere(host)))
      if (missing.length > 0) late.push({ names: foldNodeset(missing), state: 'no such host yet' })
      const reasons = late.map(({ names, state: standing }) => `${names} (${standing})`).join(', ')
      const first = hosts.find((host) => !isThere(host))
      throw new Halted(timedOutExit, `not ${state} after ${showDuration(seconds * 1000)}: ${reasons}`, {
        fields: late.map(({ names, state: standing }) => ({ field: names, message: standing })),
        hint: first === undefined ? 'rsm hosts join' : `rsm hosts doctor ${first.hostname}`,
        cause: error,
      })
    }
  }
}

interface WaitOptions extends FollowOptions {
  readonly read: () => Promise<Awaited>
  readonly isThere: (host: Host) => boolean
}

/**
 * Resolves once every host is there. Reads the state when the event stream starts, so that no change is
 * missed. Rejects for a removed host as `read` does for an unknown name.
 */
async function awaitHosts(api: Api, options: WaitOptions): Promise<readonly Host[]> {
  const { read, isThere } = options
  const known = new Map<number, Host>()
  let missing = new Set<string>()
  const open = () => missing.size > 0 || ![...known.values()].every(isThere)
  const readAll = async () => {
    const state = await read()
    known.clear()
    for (const host of state.hosts) known.set(host.id, host)
    missing = new Set(state.missing.map((name) => name.toLowerCase()))
    return open()
  }
  // Usually all are there already; a typo is reported at once.
  if (!(await readAll())) return [...known.values()]
  for await (const event of watchEvents(api, { ...options, types: ['host'] })) {
    if (event.type === 'ready' || event.type === 'reset') {
      if (!(await readAll())) break
    } else if (event.type === 'host') {
      if (event.change === 'removed') {
        if (known.has(event.host.id) && !(await readAll())) break
        continue
      }
      const { host } = event
      if (!known.has(host.id) && !missing.delete(host.hostname.toLowerCase())) continue
      known.set(host.id, host)
      if (!open()) break
    }
  }
  return [...known.values()]
}
