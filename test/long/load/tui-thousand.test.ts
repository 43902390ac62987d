import test from 'ava'
import { simulateFleet } from '../../helpers/agents/simulated-fleet.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { rsm } from '../../helpers/terminals/pty.ts'
import { keepScreen, steadyScreen } from '../../helpers/terminals/screens.ts'
import { missing, openWindow } from '../../helpers/terminals/tmux.ts'

const inTmux = missing('tmux').length > 0 ? test.skip : test

inTmux(
  'the TUI shows a task on 1,000 hosts from both ends, searches it, and steps through failures',
  async (t) => {
    const server = await startTestServer(t)
    const names = Array.from({ length: 1000 }, (_, n) => `n${String(n + 1).padStart(4, '0')}`)
    const lines = (name: string) =>
      Array.from({ length: 50 }, (_, n) => `line ${n + 1} of ${name}\n`).join('')
    const fleet = await simulateFleet(server, names, (name) => {
      const isBad = Number(name.slice(1)) % 100 === 7
      return {
        exitCode: isBad ? 9 : 0,
        output: [['stdout', lines(name)], ...(isBad ? ([['stderr', `bad news of ${name}\n`]] as const) : [])],
      }
    })
    const hosts = fleet.map(({ hostId }) => hostId)
    const taskId = await startTask(server, hosts)
    const task = await finished(server, taskId)
    t.is(task.counts.FAILED, 10)
    const window = await openWindow(t, { RSM_URL: server.url, RSM_TOKEN: server.token }, [120, 40])
    await window.type(`clear; ${rsm} tui latest; echo "exit $?"\n`)
    await window.shows(/1000\/1000 done {2}10 failed {2}990 success/)
    await window.shows(/│ {2}n\d{4} +line 50 of n\d{4}\n/)
    const shown = steadyScreen(await window.text()).split('\n')
    t.regex(shown[0] ?? '', /^ true {2}PARALLEL, by admin {2}TASK +FAILED TIME$/)
    t.deepEqual(
      shown.slice(2, 6).map((line) => line.split(/[┬│]/)[0]?.replace(/[ ─]+/g, ' ').trim()),
      ['Hosts 1000', 'all hosts 1000', '✗ n0007 exit 9 TIME', '✗ n0107 exit 9 TIME'],
    )
    await keepScreen(window, 'tui-thousand-120x40')
    await window.press('E')
    await window.shows(/┬ n0907 exit 9 ─[\s\S]*! bad news of n0907/)
    await window.press('G')
    await window.shows(/┬ n1000 SUCCESS ─[\s\S]*\n✓ n1000 .*line 50 of n1000\n/)
    await window.press('g', 'Tab', 'g')
    await window.shows(/┬ all hosts ─+ F follows *\n.*│ {2}n\d{4} +line 1 of n/)
    await window.press('e')
    await window.shows(/│! n\d{4} +bad news of/)
    await window.press('/')
    await window.type('line 33 of n0555')
    await window.press('Enter')
    await window.shows(/n0555 +line 33 of n0555\n/)
    await keepScreen(window, 'tui-thousand-search-120x40')
    await window.press('q')
    await window.shows(/^exit 0\nlocal>\n*$/)
  },
)
