import { useEffect, useState } from 'preact/hooks'
import { counted } from '../../cli/text/amounts.ts'
import { type Phase, phases } from '../../core/tasks/gates.ts'
import type { TaskResult } from '../../core/tasks/task.ts'
import { errorText } from '../api.ts'
import { Fault } from '../parts/shown.tsx'
import { PhasesOfHost } from './host-parts.tsx'
import { type OutputLine, OutputLines } from './output-lines.ts'
import { EqualOutput, OutputPane } from './output-views.tsx'
import { download, logPages, type TaskView } from './task-log.ts'
import { hasGates } from './task-words.ts'

/** Whether a line contains the search text; ignores case. */
const holdsText = (text: string, search: string): boolean => text.toLowerCase().includes(search.toLowerCase())

/** Lines of the whole log, of one host or all, that contain a text; only the last if there are too many. */
async function searchLog(
  taskId: string,
  hostId: number | undefined,
  search: string,
  signal: AbortSignal,
): Promise<readonly OutputLine[]> {
  const found = new OutputLines((text) => holdsText(text, search))
  for await (const { entries } of logPages(taskId, { hostId, signal })) found.push(entries)
  found.finish()
  return found.lines
}

interface TaskOutputProps {
  view: TaskView
  /** The host whose output is shown; undefined for all. */
  host: TaskResult | undefined
}

function emptyText({ status, copy, fetch }: TaskView['task']): string {
  if (status === 'RUNNING') return 'Nothing yet …'
  if (copy !== null) return 'No output. The list of hosts shows what the copy did.'
  return fetch === null ? 'No output' : 'No output. Save files from the list of hosts.'
}

export function TaskOutput({ view, host }: TaskOutputProps) {
  const { task, results, lines, isLater } = view
  const { taskId } = task
  const hostId = host?.hostId
  const [search, setSearch] = useState('')
  const [phase, setPhase] = useState<Phase | ''>('')
  const isDiff = task.copy?.check === 'DIFF'
  const [isFolded, setFolded] = useState(isDiff && results.length > 1)
  /** Matches in the whole log, if only its end is loaded. */
  const [found, setFound] = useState<readonly OutputLine[] | undefined>()
  const [work, setWork] = useState<{ word: string; controller: AbortController } | undefined>()
  const [fault, setFault] = useState('')
  useEffect(() => setFound(undefined), [search, hostId])
  useEffect(() => () => work?.controller.abort(), [work])

  /** Starts a longer operation, which is aborted when the page is left. */
  function begin(word: string, go: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController()
    setWork({ word, controller })
    setFault('')
    go(controller.signal).then(
      () => setWork(undefined),
      (error: unknown) => {
        if (controller.signal.aborted) return
        setWork(undefined)
        setFault(errorText(error))
      },
    )
  }

  const isRunning = task.status === 'RUNNING'
  const own = hostId === undefined ? lines : lines.filter((line) => line.hostId === hostId)
  const matching = search === '' ? own : own.filter(({ text }) => holdsText(text, search))
  const shown = (found ?? matching).filter((line) => phase === '' || (line.phase ?? 'SCRIPT') === phase)
  const isPart = isLater && found === undefined
  return (
    <div class="task-output">
      {host && <PhasesOfHost task={task} result={host} />}
      <div class="bar" role="search">
        <input
          type="search"
          aria-label="Search output"
          placeholder="Search output   /"
          value={search}
          spellcheck={false}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {search !== '' && !isFolded && (
          <span class="hint" role="status">
            {`${counted(shown.length, 'line')}${isPart ? ' in the end of the output' : ''}`}
          </span>
        )}
        {search !== '' && !isFolded && isPart && work === undefined && (
          <button
            type="button"
            onClick={() =>
              begin('Searching …', async (signal) =>
                setFound(await searchLog(taskId, hostId, search, signal)),
              )
            }
          >
            Search all output
          </button>
        )}
        {hasGates(task) && !isFolded && (
          <select
            aria-label="Phase"
            onChange={(event) => setPhase(phases.find((one) => one === event.currentTarget.value) ?? '')}
          >
            <option value="">All phases</option>
            {phases.map((one) => (
              <option key={one} value={one} selected={one === phase}>
                {one.toLowerCase()}
              </option>
            ))}
          </select>
        )}
        {results.length > 1 && hostId === undefined && (
          <button type="button" aria-pressed={isFolded} onClick={() => setFolded(!isFolded)}>
            Fold equal output
          </button>
        )}
        {work === undefined ? (
          <button
            type="button"
            title={
              hostId === undefined ? 'The output of all hosts, as text' : 'The output of this host, as text'
            }
            onClick={() => begin('Reading …', (signal) => download(taskId, host, signal))}
          >
            Download
          </button>
        ) : (
          <span class="hint" role="status">
            {work.word}
          </span>
        )}
      </div>
      <Fault text={fault} />
      {isFolded && hostId === undefined ? (
        <EqualOutput
          taskId={taskId}
          hostnames={results.map(({ hostname }) => hostname)}
          isRunning={isRunning}
          search={search}
          isDiff={isDiff}
        />
      ) : (
        <OutputPane
          lines={shown}
          empty={search !== '' ? 'No line contains this' : emptyText(task)}
          isLater={isPart}
          isOne={host !== undefined}
          isDiff={isDiff}
          search={search}
        />
      )}
    </div>
  )
}
