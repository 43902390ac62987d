import { BaseCommand } from '../../cli/command/base-command.ts'
import { copyFields, rateFields, stdinFields } from '../../cli/files/shown.ts'
import { needed } from '../../cli/flags/checks.ts'
import { findSchedule } from '../../cli/names/names.ts'
import { showTime } from '../../cli/text/time.ts'
import { actionOf, gateOf, nextOf, outcomeOf, targetOf, timingOf } from '../../cli/views/schedules.ts'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Schedule } from '../../core/protocol/http/schedules.ts'
import { showLimits } from '../../core/tasks/limits.ts'
import { durationText } from '../../core/text/duration.ts'

/** Number of slots shown; `rsm api` prints the whole history. */
const shownSlots = 10

/** Fields of the file that it copies or passes as stdin. Only the owner of the file can look it up. */
async function filesOf(
  client: Client,
  { copy, stdin, limitRate }: Schedule,
): Promise<Record<string, string>> {
  const fileId = copy?.fileId ?? stdin?.fileId
  if (fileId === undefined) return {}
  const file = await client.files.get(fileId).catch((error: unknown) => {
    if (!(error instanceof RsmError && (error.code === 'not_found' || error.code === 'forbidden')))
      throw error
    return undefined
  })
  const fields = copy === null ? stdinFields(fileId, file) : copyFields(copy, file)
  return { ...fields, ...rateFields(limitRate) }
}

export default class SchedulesShow extends BaseCommand {
  static override summary = 'Show a schedule and the results of its last slots'
  static override examples = ['$ rsm schedules show nightly']
  static override args = { schedule: needed('name of the schedule') }

  async run() {
    const { args, flags } = await this.parse(SchedulesShow)
    const client = await this.client()
    const schedule = await findSchedule(client, args.schedule)
    if (this.globals.json) return schedule
    const files = await filesOf(client, schedule)
    const { renderFields, renderTable } = await import('../../cli/text/table.ts')
    const { lastTask, params, secretParams, missedWithinSeconds } = schedule
    const missed =
      schedule.missed === 'SKIP' ? 'skip' : `run the latest within ${durationText(missedWithinSeconds)}`
    this.print(
      renderFields({
        id: schedule.id,
        name: schedule.name,
        when: timingOf(schedule, flags.utc),
        jitter: schedule.jitterSeconds === 0 ? null : `up to ${durationText(schedule.jitterSeconds)}`,
        from: schedule.from && showTime(schedule.from, flags.utc),
        until: schedule.until && showTime(schedule.until, flags.utc),
        next: nextOf(schedule, flags.utc),
        suspended: schedule.suspended,
        runs: actionOf(schedule),
        ...files,
        verify: gateOf(schedule.verify),
        rollback: gateOf(schedule.rollback),
        on: targetOf(schedule),
        'run as': schedule.runAs ?? null,
        ...(schedule.limits && { limits: showLimits(schedule.limits) }),
        params: Object.entries(params)
          .map(([name, value]) => `${name}=${value}`)
          .join(' '),
        'secret params': secretParams.join(' '),
        overlap: schedule.overlap.toLowerCase(),
        missed,
        last:
          lastTask &&
          `${lastTask.status}, ${showTime(lastTask.at, flags.utc)}, task ${lastTask.taskId ?? 'none'}`,
        owner: schedule.owner,
      }),
    )
    const { content } = await client.schedules.history(schedule.id, { size: shownSlots })
    if (content.length > 0)
      this.print(
        `\n${renderTable(content, [
          { heading: 'SLOT', value: (slot) => showTime(slot.plannedAt, flags.utc), essential: true },
          { heading: 'SLOTS', value: (slot) => slot.count ?? 'many' },
          { heading: 'OUTCOME', value: outcomeOf, essential: true },
        ])}`,
      )
    return schedule
  }
}
