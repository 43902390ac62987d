import type { FleetEvent } from '../../client/watch.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import { isOutdated } from '../task/task-state.ts'

/** Newest tasks shown; `rsm tasks list` has older ones. */
export const tasksShown = 200

/** All hosts, and the newest tasks of all hosts or of one. */
export class FleetState {
  readonly hosts = new Map<number, Host>()
  /** Newest first. */
  tasks: readonly TaskSummary[] = []
  /** Host whose tasks these are; null for all. */
  hostId: number | null = null
  isLoaded = false
  areTasksRead = false
  version = 0

  readHosts(hosts: readonly Host[]): void {
    this.hosts.clear()
    for (const host of hosts) this.hosts.set(host.id, host)
    this.isLoaded = true
    this.version++
  }

  readTasks(tasks: readonly TaskSummary[], hostId: number | null): void {
    const known = new Map(this.tasks.map((task) => [task.taskId, task]))
    this.tasks = tasks.map((task) => {
      const before = known.get(task.taskId) ?? task
      return isOutdated(task, before) ? before : task
    })
    this.hostId = hostId
    this.areTasksRead = true
  }

  /** True if the chosen host's tasks must be read again: an event does not name the hosts of a new task. */
  apply(event: FleetEvent): boolean {
    if (event.type === 'host') {
      if (event.change === 'removed') this.hosts.delete(event.host.id)
      else this.hosts.set(event.host.id, event.host)
      this.version++
      return false
    }
    if (event.type !== 'task') return false
    const { task } = event
    const at = this.tasks.findIndex(({ taskId }) => taskId === task.taskId)
    if (at !== -1) this.tasks = this.tasks.with(at, task)
    else if (this.hostId === null && event.change === 'created')
      this.tasks = [task, ...this.tasks].slice(0, tasksShown)
    return at === -1 && this.hostId !== null && event.change === 'created'
  }
}
