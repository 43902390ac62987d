import { useEffect, useId, useState } from 'preact/hooks'
import { allPages } from '../../client/http/pages.ts'
import type { Target } from '../../core/protocol/http/clusters.ts'
import type { Page, PageQuery } from '../../core/protocol/http/common.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { call, errorText, withQuery } from '../api.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { InputField, useFault, verbatim } from '../parts/field.tsx'
import { Fault, HostSet } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'

/** More hosts than these are shown as a node set. */
const mostChips = 12

interface TargetFieldProps {
  targets: readonly Host[]
  selector: string
  named: Named | undefined
  onSelector: (selector: string) => void
}

/** The chosen hosts, or a selector that is resolved while typing. */
export function TargetField({ targets, selector, named, onSelector }: TargetFieldProps) {
  const fault = useFault('target')
  const others = <a href={hrefOf('hosts')}>{targets.length === 0 ? 'or choose hosts' : 'Choose others'}</a>
  if (targets.length > 0)
    return (
      <div class="field" data-field="target">
        <span class="label">On</span>
        <div class="chips">
          {targets.length <= mostChips &&
            targets.map(({ id, hostname }) => (
              <button
                key={id}
                type="button"
                class="chip"
                aria-label={`Remove ${hostname}`}
                onClick={() => chosenHosts.update((now) => new Set([...now].filter((other) => other !== id)))}
              >
                {hostname} <span aria-hidden="true">×</span>
              </button>
            ))}
          {others}
          <button type="button" class="plain" onClick={() => chosenHosts.set(new Set())}>
            Use a selector
          </button>
        </div>
        {targets.length > 1 && <HostSet hosts={targets} />}
        {fault !== undefined && <Fault text={fault} />}
      </div>
    )
  return (
    <div class="field" data-field="target" data-faulty={fault === undefined ? undefined : ''}>
      <span class="label">On</span>
      <div class="chips">
        <label class="inline">
          <input
            name="selector"
            value={selector}
            placeholder="Selector, such as web[1-20] or @env:test"
            aria-label="Selector"
            aria-describedby="named"
            aria-invalid={fault === undefined ? undefined : true}
            spellcheck={false}
            autoCapitalize="off"
            onInput={(event) => onSelector(event.currentTarget.value)}
          />
        </label>
        {others}
      </div>
      <MatchedHosts id="named" selector={selector} named={named} />
      {fault !== undefined && <Fault text={fault} />}
    </div>
  )
}

interface MatchedHostsProps {
  id: string
  selector: string
  named: Named | undefined
}

function MatchedHosts({ id, selector, named }: MatchedHostsProps) {
  return (
    <div id={id} role="status">
      {selector.trim() !== '' && named === undefined && <p class="hint">Looking …</p>}
      {named !== undefined && 'fault' in named && <p class="fault">{named.fault}</p>}
      {named !== undefined && 'hosts' in named && <HostSet {...named} />}
    </div>
  )
}

interface SelectorFieldProps {
  /** API name of the parent object. */
  name: string
  label: string
  hint: string
  selector: string
  required?: boolean
}

/** A selector that is resolved while typing; named `selector` in the form. */
export function SelectorField({ selector: first, ...field }: SelectorFieldProps) {
  const [selector, setSelector] = useState(first)
  const id = useId()
  return (
    <div>
      <InputField
        {...field}
        control="selector"
        defaultValue={first}
        placeholder="Selector, such as web[1-20] or @env:test"
        {...verbatim}
        onInput={(event) => setSelector(event.currentTarget.value)}
      />
      <MatchedHosts id={id} selector={selector} named={useNamed(selector)} />
    </div>
  )
}

/** Hosts loaded for a selector while typing; the server also returns the total. */
const firstHosts = 500
/** Debounce of typing, in milliseconds. */
const typingPause = 250

const select = (target: Target, paging: PageQuery, signal?: AbortSignal) =>
  call<Page<Host>>('POST', withQuery('api/hosts/select', paging), {
    body: { target },
    ...(signal && { signal }),
  })

/** All hosts of a target, in natural order of names. */
export const targetHosts = async (target: Target): Promise<Host[]> =>
  (await allPages((paging) => select(target, paging), {})).content

export const fleetSize = async (): Promise<number> =>
  (await call<Page<Host>>('GET', withQuery('api/hosts', { size: 1 }))).totalElements

/** Matches of a selector, as far as known: the first hosts and their number, or an error. */
type Named = { hosts: readonly Host[]; count: number } | { fault: string }

/** Matches of a selector while it is typed; undefined without a selector or before the answer. */
export function useNamed(selector: string): Named | undefined {
  const [named, setNamed] = useState<Named | undefined>()
  useEffect(() => {
    setNamed(undefined)
    if (selector.trim() === '') return undefined
    const controller = new AbortController()
    const update = (found: Named) => {
      if (!controller.signal.aborted) setNamed(found)
    }
    const timer = setTimeout(() => {
      select({ selector: selector.trim() }, { size: firstHosts }, controller.signal).then(
        ({ content, totalElements }) => update({ hosts: content, count: totalElements }),
        (error: unknown) => update({ fault: errorText(error) }),
      )
    }, typingPause)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [selector])
  return named
}
