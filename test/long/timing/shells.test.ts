import { existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import test from 'ava'
import { cleanEnv, runRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { missing, openWindow } from '../../helpers/terminals/tmux.ts'
import { until } from '../../helpers/until.ts'

/** A name with all characters that are special in shells. */
const hostile = 'a $(touch pwned) `touch pwned` "q" \'s\' *?[a] <>|;& !x ~ \\ #'

interface Shell {
  readonly start: string
  readonly load: string
  /** The cluster name `my cluster` as this shell writes it. */
  readonly spaced: string
}

const shells: Record<string, Shell> = {
  bash: { start: 'true', load: 'source <(rsm completion bash)', spaced: 'my\\ cluster' },
  zsh: { start: 'exec zsh -f', load: 'source <(rsm completion zsh)', spaced: 'my\\ cluster' },
  fish: { start: 'exec fish --no-config', load: 'rsm completion fish | source', spaced: 'my\\ cluster' },
}

for (const [name, { start, load, spaced }] of Object.entries(shells)) {
  const absent = missing('tmux', name)
  const run = absent.length === 0 ? test : test.skip
  run(
    `S06 ${name} completes commands, options and names of the server, and never runs text of a name (2026-11-21: needs ${name} and tmux)`,
    async (t) => {
      const server = await startTestServer(t)
      for (const [hostname, role] of [
        ['web1', 'web'],
        ['web2', 'web'],
        ['db1', 'db'],
      ])
        await server.data('POST', '/api/hosts', { hostname, ip: '192.0.2.1', tags: { role } })
      await server.data('POST', '/api/clusters', { name: 'my cluster', hostIds: [1] })
      await server.data('POST', '/api/scripts', { name: hostile, type: 'BASH', content: 'echo its text' })
      const task = { script: { content: 'true' }, target: { hostIds: [1] }, queueSeconds: 0 }
      const { taskId } = await server.data('POST', '/api/tasks', task)

      const bin = temporaryDirectory(t)
      symlinkSync(resolve('bin/run.js'), join(bin, 'rsm'))
      const PATH = `${bin}:${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
      const env = { PATH, RSM_URL: server.url, RSM_TOKEN: server.token }
      const window = await openWindow(t, env, [160, 20])
      writeFileSync(join(window.home, 'file-of-mine'), '')
      // The first response may be too slow on a busy machine; received names are cached for minutes.
      const heard = [
        ['rsm hosts show ', 'web1'],
        ['rsm exec -t ', 'role='],
        ['rsm exec -g ', 'my\\ cluster'],
        ['rsm scripts show ', 'touch'],
        ['rsm logs ', String(taskId)],
      ] as const
      for (const [line, name] of heard) {
        await until(`a response to ${line}`, async () => {
          const input = [line, '', '9'].map((part) => `${part}\u0000`).join('')
          const { stdout } = await runRsm(['__complete', 'bash'], cleanEnv(window.home, env), input)
          return stdout.includes(name)
        })
      }

      await window.shows(/local>/)
      await window.type(start)
      await window.press('Enter')
      await window.type(`${load}; echo lo''aded`)
      await window.press('Enter')
      await window.shows(/^loaded/m)

      const begin = async (line: string) => {
        await window.press('C-u', 'C-l')
        await window.type(line)
      }
      const becomes: [string, string][] = [
        ['rsm hosts li', 'rsm hosts list'],
        ['rsm hosts list --status=off', 'rsm hosts list --status=OFFLINE'],
        ['rsm exec -w web1,@role:d', 'rsm exec -w web1,@role:db'],
        ["rsm exec -w 'web1,@role:d", "rsm exec -w 'web1,@role:db'"],
        ['rsm clusters show my', `rsm clusters show ${spaced}`],
        ['rsm logs ', `rsm logs ${taskId}`],
        ['rsm scripts add x ./file-', 'rsm scripts add x ./file-of-mine'],
        ['rsm hosts list --ca-file=./file-', 'rsm hosts list --ca-file=./file-of-mine'],
        ['rsm exec -o junit=./file-', 'rsm exec -o junit=./file-of-mine'],
      ]
      for (const [typed, line] of becomes) {
        await begin(typed)
        await window.press('Tab')
        const exact = line.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&')
        await t.notThrowsAsync(window.shows(new RegExp(`${exact}\\s*$`, 'm')), typed)
      }
      await begin('rsm hosts show w')
      // bash lists the names at the first Tab that adds nothing.
      await window.press('Tab', 'Tab', 'Tab')
      await window.shows(/web1[^]*web2/)

      for (const quote of ['', "'"]) {
        await begin(`rsm scripts show ${quote}a`)
        await window.press('Tab')
        await window.shows(/show '?a.*#/)
        await window.press('Enter')
        await window.shows(/its text/)
      }
      t.false(existsSync(join(window.home, 'pwned')))
    },
  )
}
