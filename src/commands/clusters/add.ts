import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { refusingTaken } from '../../cli/command/failure.ts'
import { given, needed } from '../../cli/flags/checks.ts'
import { memberFlags, readMembers } from '../../cli/flags/targets.ts'
import { counted } from '../../cli/text/amounts.ts'
import { shellWord } from '../../cli/text/sanitize.ts'

export default class ClustersAdd extends BaseCommand {
  static override summary = 'Create a cluster of hosts'
  static override examples = [
    "$ rsm clusters add web -w 'web[1-3]'",
    "$ rsm clusters add linux --selector '@os:linux'",
  ]
  static override args = { name: needed('name of the cluster') }
  static override flags = {
    ...memberFlags,
    description: string({ char: 'd', description: 'what it is for' }),
  }

  async run() {
    const { args, flags } = await this.parse(ClustersAdd)
    const client = await this.client()
    const members = await readMembers(client, flags)
    const cluster = await refusingTaken(
      `cluster ${args.name}`,
      `rsm clusters edit ${args.name}`,
      client.clusters.create({ name: args.name, ...given({ description: flags.description }), ...members }),
    )
    this.done(`added ${cluster.name} (id ${cluster.id}, ${counted(cluster.hostCount, 'host')})`)
    this.hint(`next: rsm exec -g ${shellWord(cluster.name)} COMMAND`)
    return cluster
  }
}
