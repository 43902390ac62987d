import { useState } from 'preact/hooks'
import { showDuration } from '../../cli/text/time.ts'
import { runsScript } from '../../core/tasks/task.ts'
import { useTitle } from '../parts/browser.ts'
import { Badge, Fault, LongName, Time } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { useScripts } from '../run/scripts.tsx'
import { noFilter, type TaskFilter, useTasks } from './live-tasks.ts'
import { countsText, nameOf } from './task-words.ts'

const rowsStep = 100
const statuses = ['RUNNING', 'SUCCESS', 'FAILED', 'CANCELLED']

export function TasksPage() {
  useTitle('Tasks')
  const [filter, setFilter] = useState(noFilter)
  const [most, setMost] = useState(rowsStep)
  // Without scripts only that filter is missing; the list reports its own errors.
  const scripts = useScripts()
  const { tasks, hasMore, fault } = useTasks(filter, most)
  const narrow = (name: keyof TaskFilter) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget
    setFilter((now) => ({ ...now, [name]: value.trim() }))
  }
  const isNarrow = Object.values(filter).some((value) => value !== '')
  return (
    <section class="page">
      <div class="heading">
        <h1>Tasks</h1>
      </div>
      <div class="bar filters" role="search">
        <input
          type="search"
          aria-label="Host"
          placeholder="Host   /"
          spellcheck={false}
          onInput={narrow('host')}
        />
        <input
          type="search"
          aria-label="User"
          placeholder="User"
          spellcheck={false}
          onInput={narrow('createdBy')}
        />
        <select aria-label="Script" onChange={narrow('scriptId')}>
          <option value="">Any script</option>
          {scripts?.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        <select aria-label="Status" onChange={narrow('status')}>
          <option value="">Any status</option>
          {statuses.map((status) => (
            <option key={status} value={status}>
              {status.toLowerCase()}
            </option>
          ))}
        </select>
      </div>
      <Fault text={fault} />
      {tasks?.length === 0 && fault === '' && (
        <p class="empty">{isNarrow ? 'No task matches.' : 'Nothing has run yet.'}</p>
      )}
      {tasks !== undefined && tasks.length > 0 && (
        <table class="rows">
          <thead>
            <tr>
              <th>What</th>
              <th class="w-badge">Status</th>
              <th class="w-counts">Hosts</th>
              <th class="w-user">By</th>
              <th class="w-time">Started</th>
              <th class="w-took">Took</th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <tr key={task.taskId}>
                <td class="whole-line">
                  <a class="name" href={hrefOf('tasks', task.taskId)}>
                    <LongName text={nameOf(task)} />
                  </a>
                  {!runsScript(task.type) && <span class="tag type">{task.type}</span>}
                </td>
                <td>
                  <Badge state={task.status} />
                </td>
                <td>{countsText(task.counts)}</td>
                <td class="clip" data-label="By" title={task.createdBy}>
                  {task.createdBy}
                </td>
                <td data-label="Started">
                  <Time at={task.startedAt ?? task.createdAt} />
                </td>
                <td data-label="Took">{task.duration === null ? '–' : showDuration(task.duration)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {hasMore && (
        <p class="more">
          <button type="button" onClick={() => setMost((now) => now + rowsStep)}>
            Show older tasks
          </button>
        </p>
      )}
    </section>
  )
}
