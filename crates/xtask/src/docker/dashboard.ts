// The dashboard, as Grafana's own types have it; what follows the last line is docker/grafana/redlock.json.
//
// The types are made from the schema of the release that the composition runs.
import type { Dashboard, DataQuery, DataSourceRef, Panel, RowPanel } from '@grafana/schema';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts';
import type * as timeseries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts';

/** The same in JSON, where a value of an enumeration is its text or its number. */
type Json<T> = T extends string
    ? `${T}`
    : T extends number
      ? (`${T}` extends `${infer N extends number}` ? N : T)
      : T extends object
        ? { [K in keyof T]: Json<T[K]> }
        : T;

/** A question to Prometheus: its data source has a package of its own, with all of Grafana below it. */
interface Query extends DataQuery {
    datasource: DataSourceRef;
    expr: string;
    legendFormat: string;
}

interface Of<Type extends string, Options, Custom = object>
    extends Omit<Panel<object, Partial<Custom>>, 'type' | 'options' | 'targets'> {
    type: Type;
    options?: Partial<Options>;
    targets: Query[];
}

/** A panel of another type needs a line here. */
type AnyPanel =
    | RowPanel
    | Of<'stat', stat.Options>
    | Of<'timeseries', timeseries.Options, timeseries.FieldConfig>;

type Whole = Omit<Dashboard, 'panels'> & { panels: AnyPanel[] };

export const dashboard: Json<Whole> =
