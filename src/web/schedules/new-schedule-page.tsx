import { useState } from 'preact/hooks'
import { said } from '../api.ts'
import { Fault } from '../parts/fault.tsx'
import { useTitle } from '../parts/use-title.ts'
import { go } from '../route.ts'
import { useScripts } from '../run/use-scripts.ts'
import { ScheduleForm } from './schedule-form.tsx'

export function NewSchedulePage() {
  useTitle('New schedule')
  const [fault, setFault] = useState('')
  const scripts = useScripts((error) => setFault(said(error)))
  return (
    <section class="page">
      <div class="heading">
        <h1>New schedule</h1>
      </div>
      <Fault text={fault} />
      {scripts && (
        <ScheduleForm
          scripts={scripts}
          onSaved={({ id }) => go('schedules', `${id}`)}
          onLeave={() => go('schedules')}
        />
      )}
    </section>
  )
}
