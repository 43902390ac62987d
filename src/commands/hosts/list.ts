import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, sayCount } from '../../cli/command/list.ts'
import { anyNumber, given } from '../../cli/flags/checks.ts'
import { hostsFlag, tagFlag } from '../../cli/flags/hosts.ts'
import { parsePairs } from '../../cli/input/values.ts'
import { findCluster, hostsByName } from '../../cli/names/names.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { statusWords } from '../../core/hosts/host-status.ts'
import type { HostQuery } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'

export default class HostsList extends BaseCommand {
  static override summary = 'List hosts and their state'
  static override examples = [
    '$ rsm hosts list',
    "$ rsm hosts list 'web*' --status OFFLINE -o names",
    "$ rsm hosts list '@reachable' -o nodeset",
  ]
  static override args = {
    selector: anyNumber("only these hosts, like 'web[1-3]'"),
  }
  static override flags = {
    hosts: hostsFlag,
    status: string({
      options: statusWords,
      description: 'only hosts in this state',
    }),
    cluster: string({ char: 'g', helpValue: 'NAME', description: 'only members of a cluster' }),
    tag: tagFlag('only hosts with this tag'),
    search: string({
      helpValue: 'TEXT',
      description: 'only hostnames and IP addresses that contain this text',
    }),
    limit: limitFlag,
    output: string({
      char: 'o',
      options: ['table', 'wide', 'names', 'nodeset', 'json'],
      default: 'table',
      description: 'format; nodeset folds the names, like web[1-20]',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(HostsList)
    this.globals = { ...flags, json: flags.json || flags.output === 'json' }
    const client = await this.client()
    const query: HostQuery = given({ search: flags.search })
    const asked = [...(args.selector ?? []), ...(flags.hosts ?? [])]
    const selectors =
      flags.status === undefined
        ? asked
        : (asked.length === 0 ? ['@*'] : asked).map((selector) => `${selector}&@status:${flags.status}`)
    if (flags.tag !== undefined)
      // Parsed one by one, because a host must have all tags, as in exec, even two with the same key.
      query.tag = flags.tag.flatMap((tag) =>
        Object.entries(parsePairs('-t', [tag], '-t role=web')).map(([key, value]) => `${key}:${value}`),
      )
    if (flags.cluster !== undefined) query.clusterId = (await findCluster(client, flags.cluster)).id
    const page = await hostsByName(client, query, selectors, flags.limit)
    const names = page.content.map((host) => sanitizeLine(host.hostname))
    if (flags.output === 'names') {
      if (names.length > 0) await this.printLong(names.join('\n'))
    } else if (flags.output === 'nodeset') {
      if (names.length > 0) this.print(foldNodeset(names))
    } else if (!this.globals.json && page.content.length > 0) {
      const { columnsThatFit, renderTable } = await import('../../cli/text/table.ts')
      const { hostColumns, wideHostColumns } = await import('../../cli/hosts/view.ts')
      const columns = flags.output === 'wide' ? wideHostColumns(flags.utc) : hostColumns
      const count = columnsThatFit(page.content, columns, hostColumns.length)
      await this.printLong(renderTable(page.content, columns.slice(0, count)))
      const leftOut = columns.slice(count).map(({ heading }) => heading)
      if (leftOut.length > 0)
        this.notice(`no room for ${leftOut.join(', ')}: see rsm hosts show HOST, --json, or a pipe`)
    }
    const filtered = Object.keys(query).length + selectors.length > 0
    sayCount(this, page, { noun: 'hosts', filtered, none: 'no hosts yet: rsm hosts join' })
    return page
  }
}
