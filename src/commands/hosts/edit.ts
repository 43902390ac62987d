import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { doToEach, refuseEmpty } from '../../cli/command/failure.ts'
import { given, integer, oneOrMore, repeated } from '../../cli/flags/checks.ts'
import { credentialFlags, hostsDescription, readCredentials, tagFlag } from '../../cli/flags/hosts.ts'
import { showTags } from '../../cli/hosts/view.ts'
import { parsePairs } from '../../cli/input/values.ts'
import { findHosts, namesOneHost } from '../../cli/names/names.ts'
import { RsmError } from '../../core/errors.ts'
import type { Host, HostPatch } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'

/** Tags as a merge patch, with null for removed ones. */
function tagPatch(set: readonly string[], taken: readonly string[]): NonNullable<HostPatch['tags']> {
  const tags: Record<string, string | null> = parsePairs('-t', set, '-t role=web')
  for (const key of taken) {
    if (Object.hasOwn(tags, key)) throw new RsmError('usage', `tag ${key} is both set and removed`)
    tags[key] = null
  }
  return tags
}

/** Flags that apply to one host only. */
const ownFlags = ['hostname', 'ip', 'host-key'] as const

export default class HostsEdit extends BaseCommand {
  static override summary = 'Change tags, SSH access, name or address of hosts'
  static override examples = [
    '$ rsm hosts edit web1 -t role=web --untag old',
    "$ rsm hosts edit 'web[1-3]' -t rack=r1",
    '$ rsm hosts edit @id:17 --hostname web2',
    "$ rsm hosts edit web1 --host-key ''",
  ]
  static override args = { host: oneOrMore(hostsDescription) }
  static override flags = {
    hostname: string({ description: 'new name, for one host' }),
    ip: string({ description: 'new IP address, for one host' }),
    'ssh-port': integer({ min: 1, max: 65535, description: 'SSH port' }),
    'ssh-user': string({ aliases: ['user'], description: "SSH user; '' removes it" }),
    ...credentialFlags,
    'host-key': string({
      helpValue: 'SHA256:…',
      description: "SSH host key to expect, for one host; '' forgets it",
    }),
    tag: tagFlag('set this tag; other tags stay'),
    untag: string({
      ...repeated,
      helpValue: 'KEY',
      description: 'remove this tag',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsEdit)
    const patch: HostPatch = {
      ...(await readCredentials(flags)),
      ...given({ hostname: flags.hostname, ip: flags.ip, sshPort: flags['ssh-port'] }),
    }
    if (flags['ssh-user'] !== undefined) patch.username = flags['ssh-user'] === '' ? null : flags['ssh-user']
    if (flags['host-key'] !== undefined) patch.hostKey = flags['host-key'] === '' ? null : flags['host-key']
    if (flags.tag !== undefined || flags.untag !== undefined)
      patch.tags = tagPatch(flags.tag ?? [], flags.untag ?? [])
    refuseEmpty(patch, 'hosts edit')
    const client = await this.client()
    const hosts = await findHosts(client, args.host)
    const own = ownFlags.find((name) => flags[name])
    if (own !== undefined && hosts.length > 1)
      throw new RsmError('usage', `--${own} is for one host, not for ${hosts.length}`, { hint: 'name one' })
    const nameOf = (host: Host) => host.hostname
    const done = (_: unknown, changed: readonly Host[]) => this.#report(hosts, changed)
    const changed = await doToEach(hosts, { nameOf, json: flags.json, done }, ({ id }) =>
      client.hosts.update(id, patch),
    )
    return namesOneHost(args.host) ? changed[0] : changed
  }

  #report(before: readonly Host[], hosts: readonly Host[]): void {
    const [only, ...others] = hosts
    if (only === undefined) return
    const tags = showTags(only.tags)
    const one = `${only.hostname} (id ${only.id}${tags === '' ? '' : `, ${tags}`})`
    const several = `${hosts.length} hosts: ${foldNodeset(hosts.map(({ hostname }) => hostname))}`
    this.done(`changed ${others.length === 0 ? one : several}`)
    const kept = new Set(before.flatMap(({ id, authType }) => (authType === 'NONE' ? [] : [id])))
    const lost = hosts.filter(({ id, authType }) => authType === 'NONE' && kept.has(id))
    if (lost.length > 0)
      this.notice(
        `the SSH credentials of ${foldNodeset(lost.map(({ hostname }) => hostname))} were removed: they were for the old address, port or user`,
      )
  }
}
