import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { needed } from '../../cli/flags/checks.ts'
import { makeNamedDirectory } from '../../cli/input/named-path.ts'
import { findTaskId, taskDescription } from '../../cli/names/names.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { allPages } from '../../client/http/pages.ts'
import { RsmError } from '../../core/errors.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'

export default class TasksFiles extends BaseCommand {
  static override summary = 'List the files that a task fetched from hosts, or save them'
  static override description =
    'Files that `rsm cp` or the console fetched from hosts are kept as long as the task. --outdir writes them ' +
    'as rsm cp does.'
  static override examples = ['$ rsm tasks files TASK', '$ rsm tasks files latest --outdir logs']
  static override args = { task: needed(taskDescription) }
  static override flags = {
    limit: { ...limitFlag, exclusive: ['outdir'] },
    outdir: string({
      helpValue: 'DIR',
      description: 'write the files to DIR, like DIR/web1/app.log',
    }),
  }

  async run() {
    const { args, flags } = await this.parse(TasksFiles)
    const client = await this.client()
    const taskId = await findTaskId(client, args.task)
    const page = await allPages((paging) => client.tasks.files(taskId, paging), {}, flags.limit)
    const come = page.content.filter(({ size }) => size !== null)
    if (flags.outdir === undefined) {
      await showList(this, page, {
        noun: 'files',
        filtered: false,
        none: '',
        columns: [
          { heading: 'HOST', value: ({ hostname }) => hostname, essential: true },
          { heading: 'SIZE', value: ({ size }) => (size === null ? null : showBytes(size)), essential: true },
          { heading: 'PATH', value: ({ path }) => path, essential: true },
          { heading: 'SHA256', value: ({ sha256 }) => sha256 },
        ],
      })
      if (come.length > 0) this.hint(`next: rsm tasks files ${taskId} --outdir DIR`)
      return page
    }
    if (come.length === 0)
      throw new RsmError('not_found', `no files from the hosts of task ${taskId}`, {
        hint: `rsm tasks show ${taskId}`,
      })
    const { bring } = await import('../../cli/files/from-hosts.ts')
    const { kind = 'FILE' } = come[0] ?? {}
    makeNamedDirectory(flags.outdir, '--outdir')
    const hosts = come.map((file) => ({ ...file, error: null }))
    await bring(this, client.files, { taskId, kind }, hosts, { target: flags.outdir, isFile: false })
    const missing = page.content.filter(({ size }) => size === null).map(({ hostname }) => hostname)
    if (missing.length > 0) this.notice(`no files from ${sanitizeLine(foldNodeset(missing))}`)
    return page
  }
}
