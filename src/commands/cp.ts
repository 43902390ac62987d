import { BaseCommand } from '../cli/command/base-command.ts'
import { readArguments } from '../cli/files/copy-order.ts'
import { ifGiven, oneOrMore } from '../cli/flags/checks.ts'
import { copyFlags, parseRate, withoutScripts } from '../cli/flags/copy.ts'
import { targetFlags } from '../cli/flags/targets.ts'
import { stdinReader } from '../cli/input/stdin.ts'
import { readOrder, runOrder } from '../cli/task/run.ts'

export default class Cp extends BaseCommand {
  static override summary = 'Copy files to hosts, or from them'
  static override description =
    `A path on hosts is written SELECTOR:/PATH, or :/PATH with -w, -g, -t or -a; %h in it is the name of the host, %% a percent sign.
To hosts: a path that ends in / is a directory. Programs that read the file see the old content or the new one, never a mix. A host whose file already has that content, owner and permissions is skipped. With -r a directory becomes the path, or goes into it if the path ends in / and the directory's name does not. Several sources go into the path. The source - is stdin.
From hosts: writes DIR/HOST/NAME; a file from one host can also become a file of another name.
Exit codes are those of exec.`
  static override examples = [
    "$ rsm cp app.conf 'web[1-3]:/etc/app/'",
    '$ rsm cp app.conf -g production :/etc/app/app.conf --diff',
    "$ rsm cp app.conf 'web[1-3]:/etc/app/' --mode 0640 --backup --strategy rolling",
    '$ rsm cp -r site/ -g web :/srv/site --dry-run',
    "$ pg_dump app | rsm cp - 'db1:/var/backups/app-%h.sql' --limit-rate 10M",
    "$ rsm cp 'web[1-3]:/var/log/app.log' logs",
    "$ rsm cp -r 'web[1-3]:/etc/nginx' configurations",
    '$ rsm cp web1:/etc/hosts hosts.of.web1',
  ]
  static override usage = [
    'cp FILE... [SELECTOR]:PATH [TARGETS] [OPTIONS]',
    'cp [SELECTOR]:PATH DIR [TARGETS] [OPTIONS]',
  ]
  static override args = { path: oneOrMore('files to copy, then where to copy them') }
  static override flags = { ...targetFlags, ...copyFlags }

  async run() {
    const { args, flags } = await this.parse(Cp)
    const asked = readArguments(args.path)
    const { selector } = 'to' in asked ? asked.to : asked.from
    const hosts = [...(flags.hosts ?? []), ...(selector === '' ? [] : [selector])]
    const limitRate = ifGiven(flags['limit-rate'], parseRate)
    const stdin = stdinReader()
    // With -q, show only requested output.
    const shown = flags.quiet && !flags.diff && !flags['dry-run'] ? null : 'grouped'
    const order = await readOrder(
      { ...flags, ...withoutScripts, hosts: hosts.length === 0 ? undefined : hosts },
      stdin,
      (text) => this.notice(text),
      shown,
    )
    const client = () => this.client()
    const transfer =
      'to' in asked
        ? await (await import('../cli/files/to-hosts.ts')).toHosts(this, client, asked, flags, stdin)
        : (await import('../cli/files/from-hosts.ts')).fromHosts(this, client, asked, flags)
    const options = { ...order.options, ...(limitRate !== undefined && { limitRate }) }
    try {
      return await runOrder(this, await client(), { ...order, options }, transfer)
    } finally {
      await transfer.close?.()
    }
  }
}
