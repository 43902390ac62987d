import test from 'ava'
import { LogLines } from '../../../src/cli/tui/log/lines.ts'
import { resultRow } from '../../../src/cli/tui/view/host-pane.ts'
import type { LogEntry } from '../../../src/core/protocol/http/logs.ts'
import { resultOf } from '../../fixtures/fake-server.ts'

test("a host's row shows its phase, and so do the lines written in that phase", (t) => {
  const running = { status: 'RUNNING', exitCode: null, completedAt: null } as const
  const stateIn = (phase: 'SCRIPT' | 'VERIFY' | 'ROLLBACK') =>
    resultRow(resultOf('web1', { ...running, phase }), 0).state
  t.deepEqual([stateIn('SCRIPT'), stateIn('VERIFY'), stateIn('ROLLBACK')], ['RUNNING', 'VERIFY', 'ROLLBACK'])
  t.is(resultRow(resultOf('web1', { status: 'FAILED', exitCode: 3 }), 0).state, 'exit 3')

  const entry = { id: 1, hostId: 1, hostname: 'web1', sequence: 0, timestamp: '' }
  const lines = new LogLines()
  const pieces: Pick<LogEntry, 'stream' | 'phase' | 'data'>[] = [
    { stream: 'stdout', data: 'deployed\nhalf' },
    { stream: 'stderr', data: 'sick\n', phase: 'VERIFY' },
    { stream: 'stdout', data: 'undone\n', phase: 'ROLLBACK' },
  ]
  const shown = pieces.flatMap((piece) => lines.push({ ...entry, ...piece })).map(({ text }) => text)
  t.deepEqual(shown, ['deployed', '[verify] sick', '[rollback] undone'])
})
