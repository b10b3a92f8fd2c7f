package script;

import java.io.BufferedWriter;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Metric;
import org.apache.flink.metrics.MetricConfig;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.reporter.MetricReporter;
import org.apache.flink.metrics.reporter.MetricReporterFactory;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.legacy.SinkFunctionProvider;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.abilities.SupportsWatermarkPushDown;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/**
 * A connector that gives rows of a script, and the reporter that counts late rows. All sources of a job take turns on one
 * timeline: a source gives a row, then waits until the sink has received what the row caused. The sink notes the step.
 * Lines of a script, separated by tabs:
 *   row TAB table TAB subtask TAB kind TAB value ...   (\N is NULL)
 *   sleep TAB ms | align TAB period TAB offset | end TAB table
 */
public class Script {
    static final Map<String, Timeline> LINES = new ConcurrentHashMap<>();

    static Timeline of(String path) {
        return LINES.computeIfAbsent(path, Timeline::new);
    }

    static class Timeline {
        final List<String[]> steps = new ArrayList<>();
        final Set<Integer> claimed = Collections.synchronizedSet(new HashSet<>());
        volatile int turn = 0;
        final long pace = Long.parseLong(System.getenv().getOrDefault("SCRIPT_PACE", "60"));
        final BufferedWriter out;

        Timeline(String path) {
            try {
                for (String line : Files.readAllLines(Paths.get(path), StandardCharsets.UTF_8)) {
                    if (!line.isEmpty()) steps.add(line.split("\t", -1));
                }
                out = Files.newBufferedWriter(Paths.get(path + ".out"), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }

        synchronized void write(String line) {
            try {
                out.write(line);
                out.write("\n");
                out.flush();
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }
    }

    public static class Source extends RichParallelSourceFunction<RowData> {
        final String table, path;
        final RowType type;
        volatile boolean running = true;

        Source(String table, String path, RowType type) {
            this.table = table;
            this.path = path;
            this.type = type;
        }

        @Override
        public void run(SourceContext<RowData> ctx) throws Exception {
            Timeline line = of(path);
            int me = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            Thread.sleep(line.pace * 4); // until all sources run
            for (int n = 0; n < line.steps.size() && running; n++) {
                while (line.turn < n) Thread.sleep(1);
                String[] step = line.steps.get(n);
                if (step[0].equals("row")) {
                    if (!step[1].equals(table) || Integer.parseInt(step[2]) != me) continue;
                    synchronized (ctx.getCheckpointLock()) {
                        ctx.collect(row(step));
                    }
                    Thread.sleep(line.pace);
                    line.turn = Math.max(line.turn, n + 1);
                } else if (step[0].equals("end") && step[1].equals(table)) {
                    if (line.claimed.add(n)) new Thread(() -> {
                        try { Thread.sleep(line.pace * 4); } catch (InterruptedException e) { }
                        line.turn = Math.max(line.turn, line.steps.indexOf(step) + 1);
                    }).start();
                    return;
                } else if (!step[0].equals("end") && line.claimed.add(n)) {
                    long wait = Long.parseLong(step[1]);
                    if (step[0].equals("align")) {
                        long now = System.currentTimeMillis();
                        wait = Math.floorMod(Long.parseLong(step[2]) - now, wait);
                    }
                    Thread.sleep(wait);
                    line.turn = Math.max(line.turn, n + 1);
                }
            }
            while (running && line.turn < line.steps.size()) Thread.sleep(1);
            Thread.sleep(line.pace * 2);
        }

        @Override
        public void cancel() {
            running = false;
        }

        RowData row(String[] step) {
            GenericRowData found = new GenericRowData(RowKind.INSERT, type.getFieldCount());
            for (RowKind kind : RowKind.values()) if (kind.shortString().equals(step[3])) found.setRowKind(kind);
            for (int i = 0; i < type.getFieldCount(); i++) found.setField(i, value(step[4 + i], type.getTypeAt(i)));
            return found;
        }

        static Object value(String text, LogicalType type) {
            if (text.equals("\\N")) return null;
            switch (type.getTypeRoot()) {
                case BIGINT: return Long.parseLong(text);
                case INTEGER: return Integer.parseInt(text);
                case DOUBLE: return Double.parseDouble(text);
                case BOOLEAN: return Boolean.parseBoolean(text);
                case VARCHAR: return StringData.fromString(text);
                case DECIMAL:
                    DecimalType d = (DecimalType) type;
                    return DecimalData.fromBigDecimal(new BigDecimal(text), d.getPrecision(), d.getScale());
                case DATE: return (int) LocalDate.parse(text).toEpochDay();
                case TIMESTAMP_WITHOUT_TIME_ZONE:
                    return TimestampData.fromLocalDateTime(LocalDateTime.parse(text.replace(' ', 'T')));
                case TIMESTAMP_WITH_LOCAL_TIME_ZONE: return TimestampData.fromInstant(Instant.parse(text));
                default: throw new IllegalArgumentException("no " + type);
            }
        }
    }

    static final ConfigOption<String> PATH = ConfigOptions.key("script").stringType().noDefaultValue();
    static final ConfigOption<String> MODE = ConfigOptions.key("changelog").stringType().defaultValue("I");
    static final ConfigOption<Boolean> PUSH = ConfigOptions.key("push-down").booleanType().defaultValue(false);

    static ChangelogMode mode(String text) {
        switch (text) {
            case "I": return ChangelogMode.insertOnly();
            case "upsert": return ChangelogMode.upsert(false);
            default: return ChangelogMode.all();
        }
    }

    public static class Factory implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        @Override public String factoryIdentifier() { return "script"; }
        @Override public Set<ConfigOption<?>> requiredOptions() { return Set.of(PATH); }
        @Override public Set<ConfigOption<?>> optionalOptions() {
            Set<ConfigOption<?>> found = new LinkedHashSet<>(List.of(MODE, PUSH));
            found.add(FactoryUtil.WATERMARK_EMIT_STRATEGY);
            found.add(FactoryUtil.WATERMARK_ALIGNMENT_GROUP);
            found.add(FactoryUtil.WATERMARK_ALIGNMENT_MAX_DRIFT);
            found.add(FactoryUtil.WATERMARK_ALIGNMENT_UPDATE_INTERVAL);
            found.add(FactoryUtil.SOURCE_IDLE_TIMEOUT);
            return found;
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
            helper.validate();
            ReadableConfig options = helper.getOptions();
            String table = context.getObjectIdentifier().getObjectName();
            DataType type = context.getPhysicalRowDataType();
            boolean push = options.get(PUSH);
            return push
                ? new Pushed(table, options.get(PATH), type, options.get(MODE), null)
                : new Scan(table, options.get(PATH), type, options.get(MODE));
        }

        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
            helper.validate();
            ReadableConfig options = helper.getOptions();
            return new Sink(context.getObjectIdentifier().getObjectName(), options.get(PATH), options.get(MODE), context.getPhysicalRowDataType());
        }
    }

    static class Scan implements ScanTableSource {
        final String table, path, mode;
        final DataType type;

        Scan(String table, String path, DataType type, String mode) {
            this.table = table;
            this.path = path;
            this.type = type;
            this.mode = mode;
        }

        @Override public ChangelogMode getChangelogMode() { return mode(mode); }
        @Override public DynamicTableSource copy() { return new Scan(table, path, type, mode); }
        @Override public String asSummaryString() { return "script"; }

        WatermarkStrategy<RowData> strategy() { return null; }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            RowType row = (RowType) type.getLogicalType();
            WatermarkStrategy<RowData> strategy = strategy();
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(ProviderContext provider, StreamExecutionEnvironment env) {
                    DataStream<RowData> found = env.addSource(new Source(table, path, row), table, org.apache.flink.table.runtime.typeutils.InternalTypeInfo.of(row));
                    return strategy == null ? found : found.assignTimestampsAndWatermarks(strategy);
                }
                @Override public boolean isBounded() { return false; }
            };
        }
    }

    static class Pushed extends Scan implements SupportsWatermarkPushDown {
        WatermarkStrategy<RowData> strategy;

        Pushed(String table, String path, DataType type, String mode, WatermarkStrategy<RowData> strategy) {
            super(table, path, type, mode);
            this.strategy = strategy;
        }

        @Override WatermarkStrategy<RowData> strategy() { return strategy; }
        @Override public DynamicTableSource copy() { return new Pushed(table, path, type, mode, strategy); }
        @Override public void applyWatermark(WatermarkStrategy<RowData> found) { strategy = found; }
    }

    static class Sink implements DynamicTableSink {
        final String table, path, mode;
        final DataType type;

        Sink(String table, String path, String mode, DataType type) {
            this.table = table;
            this.path = path;
            this.mode = mode;
            this.type = type;
        }

        @Override public ChangelogMode getChangelogMode(ChangelogMode requested) { return mode.equals("I") ? requested : mode(mode); }
        @Override public DynamicTableSink copy() { return new Sink(table, path, mode, type); }
        @Override public String asSummaryString() { return "script"; }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            return SinkFunctionProvider.of(new Written(table, path, context.createDataStructureConverter(type)));
        }
    }

    public static class Written extends RichSinkFunction<RowData> {
        final String table, path;
        final DynamicTableSink.DataStructureConverter converter;

        Written(String table, String path, DynamicTableSink.DataStructureConverter converter) {
            this.table = table;
            this.path = path;
            this.converter = converter;
        }

        @Override
        public void invoke(RowData value, SinkFunction.Context context) {
            Timeline line = of(path);
            Row row = (Row) converter.toExternal(value);
            StringBuilder text = new StringBuilder("out\t" + table + "\t" + line.turn + "\t" + context.currentWatermark() + "\t" + row.getKind().shortString());
            for (int i = 0; i < row.getArity(); i++) {
                Object field = row.getField(i);
                text.append("\t").append(field == null ? "\\N" : field instanceof Object[] ? java.util.Arrays.toString((Object[]) field) : field.toString());
            }
            line.write(text.toString());
        }
    }

    /** Keeps the last values of the counters of late rows. */
    public static class Reporter implements MetricReporter, MetricReporterFactory {
        static final Map<Metric, String> FOUND = new ConcurrentHashMap<>();
        static final List<String> VALUES = Collections.synchronizedList(new ArrayList<>());

        @Override public MetricReporter createMetricReporter(java.util.Properties properties) { return new Reporter(); }
        @Override public void open(MetricConfig config) { }
        @Override public void close() { }
        @Override public void notifyOfAddedMetric(Metric metric, String name, MetricGroup group) {
            if (name.equals("numLateRecordsDropped")) FOUND.put(metric, group.getAllVariables().getOrDefault("<operator_name>", "?"));
        }
        @Override public void notifyOfRemovedMetric(Metric metric, String name, MetricGroup group) {
            String operator = FOUND.remove(metric);
            if (operator != null && metric instanceof Counter) VALUES.add(operator + "\t" + ((Counter) metric).getCount());
        }
    }

    public static String late() {
        synchronized (Reporter.VALUES) {
            String found = String.join("\n", Reporter.VALUES);
            Reporter.VALUES.clear();
            return found;
        }
    }
}
