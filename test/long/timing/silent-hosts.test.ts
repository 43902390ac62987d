import test from 'ava'
import {
  envelope,
  eventStream,
  resultOf,
  startFakeServer,
  taskOf,
  taskRoutes,
} from '../../fixtures/fake-server.ts'
import { cleanEnv, runRsm, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'

const away = 'its agent is not connected; waiting up to 2 min (--queue)'
const waiting = (at: number, error: string | null = away) =>
  resultOf(`web00${at}`, { status: 'PENDING', exitCode: null, completedAt: null, error })
const rack = [1, 2, 3, 4, 5, 6]

for (const [way, argv] of Object.entries({
  live: ['exec'],
  grouped: ['exec', '-b'],
  github: ['exec', '-o', 'github'],
  'logs -f': ['logs', '-f', 'task-1'],
  'tasks wait': ['tasks', 'wait', 'task-1'],
}))
  test(`A16 hosts that a task waits for are reported in one line, and later ones too: ${way}`, async (t) => {
    const ended = taskOf(rack.map((at) => resultOf(`web00${at}`)))
    let heard: (text: string) => Promise<void> = async () => {}
    const server = await startFakeServer(t, {
      ...taskRoutes(ended, []),
      'GET /api/tasks': (_seen, response) => envelope(response, 404, {}),
      'GET /api/tasks/task-1/logs': async (_seen, response) => {
        const write = eventStream(response)
        write('task', { ...ended, results: undefined, status: 'RUNNING' })
        for (const at of [1, 2, 3]) write('host', waiting(at))
        await heard('web[001-003]')
        // After a lost connection all unfinished hosts are sent again.
        for (const at of [1, 2, 3, 4, 5]) write('host', waiting(at))
        write(
          'host',
          waiting(6, 'its agent is not connected (its token is not known); waiting up to 2 min (--queue)'),
        )
        await heard('web006')
        write('end', ended)
        response.end()
      },
    })
    const target = argv[0] === 'exec' ? ['-w', 'web[001-006]', 'x'] : []
    const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: 'secret' })
    const rsm = startRsm([...argv, ...target], env)
    heard = rsm.shows
    const { stderr } = await rsm.done
    t.deepEqual(stderr.split('\n').slice(0, 3), [
      `rsm: web[001-003] (3 hosts): ${away}`,
      `rsm: web[004-005] (2 hosts): ${away}`,
      'rsm: web006: its agent is not connected (its token is not known); waiting up to 2 min (--queue)',
    ])
    heard = async () => {}
    const quiet = await runRsm([...argv, '-q', ...target], env)
    t.is(quiet.stderr, '')
  })
